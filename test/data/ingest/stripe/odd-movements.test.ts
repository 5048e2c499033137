// Refunds, disputes and entries of the balance that are no usual ones: no money is counted that did not move.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Stripe } from 'stripe'
import { savedCard } from '../../../support/simulators.ts'
import { openStripeImports, storedSums } from './stripe-imports.ts'

const all = await openStripeImports()
after(() => all.close())
const { stripe } = all
const put = (...objects: object[]) => all.simulator.control('/objects', { objects })
const month = new Date().toISOString().slice(0, 7)

async function pay(amount: number): Promise<Stripe.Charge> {
  const { customer, payment_method } = await savedCard(stripe)
  const how = { confirm: true, off_session: true }
  const intent = await stripe.paymentIntents.create({ ...how, amount, currency: 'usd', customer, payment_method })
  return stripe.charges.retrieve(intent.latest_charge as string)
}

test('refunds that released an authorization, disputes in another currency, entries that cannot be converted', async () => {
  const [expired, disputed] = [await pay(10_000), await pay(5_000)]
  const released = await stripe.refunds.create({ charge: expired.id })
  const { amount: amount_refunded } = released
  await put(
    { ...expired, captured: false, amount_captured: 0, amount_refunded, refunded: true, balance_transaction: null },
    { ...released, reason: 'expired_uncaptured_charge', balance_transaction: null },
  )
  const dispute = await all.simulator.control<Stripe.Dispute>('/disputes', { charge: disputed.id })
  await put({ ...dispute, amount: 4_200, currency: 'eur' })
  await put({ ...dispute, id: 'du_coin', amount: 9_900, currency: 'usdc' })
  const [entry] = (await stripe.balanceTransactions.list({ limit: 1 })).data
  await put({ ...entry, id: 'txn_coin', amount: 5, fee: 0, net: 5, currency: 'usdc', source: null, type: 'transfer' })

  const project = await all.imports.project()
  const { status, tally } = await all.run(project)
  assert.equal(status, 'done')
  assert.deepEqual(tally.rejects.toSorted(), [
    'du_coin has an amount that cannot be converted: 9900 USDC',
    'txn_coin returned 5 USDC, which cannot be converted',
  ])
  assert.deepEqual(await storedSums(all, project), [
    `chargebacks ${month} EUR: 1 4200`,
    `payments ${month} USD: 1 5000`,
  ])
})
