// Random Stripe accounts, of every shape that the published types allow, are imported to their end with the right sums and prices.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { randomAccount } from '../../../random-accounts/account.ts'
import { checkAccounts } from '../../../random-accounts/check.ts'
import { deviations } from '../../../random-accounts/published-types.ts'
import { openStripeSimulator } from '../../../support/simulators.ts'
import { openStripeImports } from './stripe-imports.ts'

const ACCOUNTS = 36
const AT_ONCE = 12

const all = await openStripeImports()
after(() => all.close())

const TYPES: Record<string, string> = {
  ...{ product: 'Product', price: 'Price', coupon: 'Coupon', discount: 'Discount', customer: 'Customer' },
  ...{ subscription: 'Subscription', invoice: 'Invoice', payment_intent: 'PaymentIntent', charge: 'Charge' },
  ...{ payment_method: 'PaymentMethod', refund: 'Refund', dispute: 'Dispute' },
  balance_transaction: 'BalanceTransaction',
}

const wrongOf = (objects: object[]) =>
  objects.flatMap((one) => {
    const { object, deleted } = one as { object: string; deleted?: boolean }
    return deviations(deleted ? 'DeletedCustomer' : TYPES[object]!, one)
  })

test('random accounts have the fields that Stripe publishes', () => {
  assert.deepEqual([...new Set(wrongOf([1, 2, 3, 4, 5, 6, 7, 8].flatMap(randomAccount)))], [])
})

test("the simulator's objects have the fields that Stripe publishes", async (t) => {
  const simulator = await openStripeSimulator({ demoCustomers: 60 })
  t.after(() => simulator.cleanUp())
  const stripe = simulator.client()
  const page = { limit: 100 }
  const lists = await Promise.all([
    ...[stripe.products.list(page), stripe.prices.list({ ...page, expand: ['data.tiers', 'data.currency_options'] })],
    ...[stripe.customers.list(page), stripe.subscriptions.list({ ...page, status: 'all' }), stripe.charges.list(page)],
    ...[stripe.invoices.list({ ...page, expand: ['data.payments'] }), stripe.paymentIntents.list(page)],
    ...[stripe.refunds.list(page), stripe.disputes.list(page), stripe.balanceTransactions.list(page)],
  ])
  const objects: object[] = lists.flatMap(({ data }) => data as object[])
  assert.ok(objects.length > 300)
  assert.deepEqual([...new Set(wrongOf(JSON.parse(JSON.stringify(objects))))], [])
})

test(`${ACCOUNTS} random accounts are imported to their end, with the sums and prices of an independent reading`, async () => {
  for (let seed = 1; seed <= ACCOUNTS; seed += AT_ONCE)
    await checkAccounts(
      all,
      Array.from({ length: AT_ONCE }, (_, n) => seed + n),
    )
})
