// A customer with a card at each of two Stripe customers: a charge that a restored backup forgot is found, whichever card it was.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { reconcile } from '../../../src/payments/billing/reconcile/reconcile.ts'
import { addPayment } from '../../support/billing.ts'
import { savedCard } from '../../support/simulators.ts'
import { MERCHANT, startStripeBilling } from '../../support/stripe-billing.ts'
import { forgetOrders, markUnlisted } from './restored.ts'

const billing = await startStripeBilling({}, { worker: false })
after(() => billing.stop())
const { db } = billing
const shop = await billing.shop()

const DAY_MS = 86_400_000

/** Adds a payment that saves another card, at a Stripe customer of its own; the latest is the card that is charged. */
const payWith = (external_id: string, token: string, at: string) =>
  addPayment(db, shop.id, external_id, { psp: 'stripe', merchantId: MERCHANT, token, at })

/** What a restored backup does not have, once its account was compared. */
async function forget(...orderIds: string[]): Promise<void> {
  await forgetOrders(db, orderIds)
  await markUnlisted(db, shop.id)
  await reconcile(billingContext(billing.server.app), new Date(Date.now() - DAY_MS).toISOString())
}

/** A charge with the key `k` of a card that was saved after another one. */
async function charged(savedAt = '2020-01-01T00:00:00Z') {
  const { external_id } = await shop.customerWithCard()
  const { customer, payment_method } = await savedCard(billing.client)
  const saved = await payWith(external_id, payment_method, savedAt)
  const { order_id } = (await shop.charge(external_id, { idempotency_key: 'k' })).body
  return { external_id, customer, payment_method, saved, order_id: order_id as string }
}

const repeat = async (external_id: string) => (await shop.charge(external_id, { idempotency_key: 'k' })).body
const charges = async (customer: string) => (await billing.client.charges.list({ customer })).data.length

describe('a charge of a card that is no longer the saved card is adopted after the life of its key', () => {
  test('if the payment that saved the card is lost too; its own card is the saved card then', async () => {
    const { external_id, customer, payment_method, saved, order_id } = await charged()
    await forget(order_id, saved)
    await billing.stripe.control('/clock', { advance_ms: 2 * DAY_MS })
    const { checkout_status, idempotent_replay, order_id: adopted } = await repeat(external_id)
    assert.deepEqual([checkout_status, idempotent_replay, await charges(customer)], ['succeeded', true, 1])
    const [row] = await db.query('select payment_method_token from report_transactions where order_id = $1', [adopted])
    assert.equal(row!.payment_method_token, payment_method)
    const next = (await shop.charge(external_id)).body
    assert.deepEqual([next.checkout_status, await charges(customer)], ['succeeded', 2])
  })

  test('if another card was saved since', async () => {
    const { external_id, customer, order_id } = await charged('2020-02-01T00:00:00Z')
    const other = await savedCard(billing.client)
    await payWith(external_id, other.payment_method, '2021-01-01T00:00:00Z')
    await billing.stripe.control('/clock', { advance_ms: 2 * DAY_MS })
    await forget(order_id)
    const { checkout_status, idempotent_replay } = await repeat(external_id)
    assert.deepEqual(
      [checkout_status, idempotent_replay, await charges(customer), await charges(other.customer)],
      ['succeeded', true, 1, 0],
    )
  })

  test('if no card is saved, because all were erased', async () => {
    const { external_id, customer, order_id } = await charged('2020-03-01T00:00:00Z')
    await db.query(
      'update customers set cards_erased_at = db_clock() where organization_id = $1 and external_id = $2',
      [shop.id, external_id],
    )
    await forget(order_id)
    const { checkout_status, idempotent_replay } = await repeat(external_id)
    assert.deepEqual([checkout_status, idempotent_replay, await charges(customer)], ['succeeded', true, 1])
  })
})
