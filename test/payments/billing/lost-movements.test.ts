// A restored organization with two merchant accounts: whatever was charged at one of them is never charged again at the other.
import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import { ApiError } from '../../../src/lib/errors.ts'
import type { BillingContext } from '../../../src/payments/billing/context.ts'
import { oneOffCharge } from '../../../src/payments/billing/kinds.ts'
import { adoptLost } from '../../../src/payments/billing/reconcile/lost.ts'
import { reconcile } from '../../../src/payments/billing/reconcile/reconcile.ts'
import { IS_LOST } from '../../../src/payments/providers/lost-movements.ts'
import { addPayment, type Organization, startBilling } from '../../support/billing.ts'
import { addRow } from '../../support/data.ts'
import { column } from '../../support/rows.ts'
import { chargeOf, contextOf } from './in-process.ts'
import { forgetOrders, markUnlisted, unlisted } from './restored.ts'
import { fixedProviders } from './scripted-provider.ts'
import { twoStepProvider } from './two-step-provider.ts'

const billing = await startBilling({}, { worker: false })
after(() => billing.stop())
const { db } = billing
const DAY_MS = 86_400_000
const since = () => new Date(Date.now() - DAY_MS).toISOString()

let there: Record<'a' | 'b', ReturnType<typeof twoStepProvider>>
let shop: Organization
let user: string
let days = 0
beforeEach(async () => {
  shop = await billing.organization()
  for (const psp_merchant_id of ['a', 'b'])
    await addRow(db, 'merchant_accounts', {
      organization_id: shop.id,
      psp: 'stripe',
      psp_merchant_id,
      is_sandbox: true,
    })
  there = {
    a: twoStepProvider({ name: 'stripe', merchantId: 'a' }),
    b: twoStepProvider({ name: 'stripe', merchantId: 'b' }),
  }
  user = await shop.customer({ psp: 'stripe', merchantId: 'a', at: nextDay() })
})

const nextDay = () => new Date(Date.parse('2020-01-01T00:00:00Z') + ++days * DAY_MS).toISOString()

/** Billing with these accounts connected. */
function context(...accounts: ('a' | 'b')[]): BillingContext {
  const providers = accounts.map((one) => there[one].provider)
  return contextOf(db, providers[0]!, {
    providers: {
      ...fixedProviders(providers),
      all: async () => providers.map((provider) => ({ organizationId: shop.id, provider })),
    },
  })
}

const charge = (connected = context('a', 'b')) => oneOffCharge(connected, shop.id, chargeOf(user))
const payAt = (merchantId: string) =>
  addPayment(db, shop.id, user, { psp: 'stripe', merchantId, token: 'card', at: nextDay() })
const charged = () => [there.a.charged().length, there.b.charged().length]

/** The customer paid at B and was charged there; the backup knows neither, unless `paid` is imported again first. */
async function loseChargeAtB(isPaidAgain = false): Promise<void> {
  const paid = await payAt('b')
  const { order_id } = await charge()
  await forgetOrders(db, isPaidAgain ? [order_id] : [order_id, paid])
  await markUnlisted(db, shop.id)
  // Providers forget keys after a day.
  for (const one of there.b.payments.values()) one.isForgotten = true
  if (isPaidAgain) await payAt('a')
}

const refusal = (text: RegExp) => (error: unknown) => {
  assert.ok(error instanceof ApiError)
  assert.deepEqual([error.status, error.code], [503, 'restore_not_reconciled'])
  assert.match(error.message, text)
  return true
}

describe('a key that was charged at another account than that of the saved card', () => {
  for (const isPaidAgain of [false, true])
    test(`503 until both were listed, then the first outcome${isPaidAgain ? ', with a newer payment at the other account' : ''}`, async () => {
      await loseChargeAtB(isPaidAgain)
      await assert.rejects(charge(), refusal(/stripe a, stripe b/))
      const { findings } = await reconcile(context('a', 'b'), since())
      assert.deepEqual(column(findings, 'difference'), ['missing_here'])
      const { checkout_status, idempotent_replay } = await charge()
      assert.deepEqual([checkout_status, idempotent_replay, charged()], ['succeeded', true, [0, 1]])
      const again = await charge()
      assert.deepEqual([again.checkout_status, charged()], ['succeeded', [0, 1]])
      assert.deepEqual((await reconcile(context('a', 'b'), since())).findings, [])
    })

  test('503 as long as its account is not connected again, however often the other one is listed', async () => {
    await loseChargeAtB()
    const { not_compared } = await reconcile(context('a'), since())
    const ours = not_compared.filter(({ organization_id }) => organization_id === shop.id)
    assert.deepEqual(column(ours, 'psp_merchant_id'), ['b'])
    await assert.rejects(charge(context('a')), refusal(/: stripe b\.$/))
    assert.deepEqual([await unlisted(db, shop.id), charged()], [['b'], [0, 1]])
  })

  test('is found without end: also when its account was listed months ago', async () => {
    await loseChargeAtB()
    await reconcile(context('a', 'b'), since())
    await db.query(
      `update lost_movements set found_at = found_at - interval '200 days', moved_at = moved_at - interval '200 days'`,
    )
    assert.deepEqual([(await charge()).idempotent_replay, charged()], [true, [0, 1]])
  })

  test('two requests with the key at once bring back one order', async () => {
    await loseChargeAtB()
    await reconcile(context('a', 'b'), since())
    const [one, other] = await Promise.all([charge(), charge()])
    assert.deepEqual([one.order_id, charged()], [other.order_id, [0, 1]])
  })
})

test('a known key is replayed while accounts have to be listed', async () => {
  const first = await charge()
  await markUnlisted(db, shop.id)
  const again = await charge()
  assert.deepEqual([again.order_id, again.idempotent_replay], [first.order_id, true])
})

test('an order in progress whose handle the backup lacks waits for the list, which has the handle', async () => {
  there.a.faults.set('confirm', 'no_response')
  const { order_id } = await charge()
  await db.query(
    `update orders set provider_handle = null, created_at = created_at - interval '2 days', lease_until = null where order_id = $1`,
    [order_id],
  )
  await markUnlisted(db, shop.id)
  there.a.faults.clear()
  there.a.faults.set('findByKey', 'lost')
  const { settled } = await reconcile(context('a', 'b'), since())
  assert.deepEqual([settled, (await charge()).checkout_status, charged()], [1, 'succeeded', [1, 0]])
})

test('a charge of another organization that uses the same account is no lost movement, and cannot be adopted', async () => {
  const other = await billing.organization()
  const customer = await other.customer({ psp: 'stripe', merchantId: 'b' })
  await loseChargeAtB()
  const both = {
    ...context('b'),
    providers: {
      ...context('b').providers,
      all: async () => [shop, other].map(({ id }) => ({ organizationId: id, provider: there.b.provider })),
    },
  }
  await reconcile(both, since())
  const lostOf = async ({ id }: Organization) => {
    const rows = `select l.transaction_id from lost_movements l where l.organization_id = $1 and ${IS_LOST}`
    return (await db.query(rows, [id])).map(({ transaction_id }) => transaction_id!)
  }
  const [transactionId = assert.fail('not lost')] = await lostOf(shop)
  assert.deepEqual(await lostOf(other), [transactionId])
  await adoptLost(both, { organizationId: shop.id, psp: 'stripe', merchantId: 'b', transactionId }, user)
  assert.deepEqual([await lostOf(shop), await lostOf(other)], [[], []])
  const lost = { organizationId: other.id, psp: 'stripe', merchantId: 'b', transactionId }
  await assert.rejects(adoptLost(both, lost, customer), /There is no lost charge/)
})
