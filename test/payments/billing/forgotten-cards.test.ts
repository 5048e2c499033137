// A customer with a card at each of two Stripe customers: a charge that a restored backup forgot is found, whichever card it was.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { ordersInProgress } from '../../../src/payments/billing/charge/orders.ts'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { CHARGE, look } from '../../../src/payments/billing/unknown/look.ts'
import { addPayment } from '../../support/billing.ts'
import { MERCHANT, startStripeBilling } from '../../support/stripe-billing.ts'
import { savedCard } from '../../support/stripe-simulator.ts'

const billing = await startStripeBilling({}, { worker: false })
after(() => billing.stop())
const { db } = billing
const shop = await billing.shop()

/** Adds a payment that saves another card, at a Stripe customer of its own; the latest is the card that is charged. */
const payWith = (external_id: string, token: string, at: string) =>
  addPayment(db, shop.id, external_id, { psp: 'stripe', merchantId: MERCHANT, token, at })

/** What a restored backup does not have. */
async function forget(...orderIds: string[]): Promise<void> {
  for (const table of ['consumables', 'order_log', 'report_transactions', 'orders'])
    await db.query(`delete from ${table} where order_id = any($1)`, [orderIds])
  await db.query(`update organizations set restored_from = db_clock() - interval '1 hour' where id = $1`, [shop.id])
}

/** A charge with the key `k` of a card that was saved after another one; neither order is forgotten yet. */
async function charged(firstCard?: string) {
  const { external_id } = await shop.customerWithCard(firstCard)
  const { customer, payment_method } = await savedCard(billing.client)
  const saved = await payWith(external_id, payment_method, '2020-01-01T00:00:00Z')
  const { order_id } = (await shop.charge(external_id, { idempotency_key: 'k' })).body
  return { external_id, customer, saved, order_id: order_id as string }
}

const repeat = async (external_id: string) => (await shop.charge(external_id, { idempotency_key: 'k' })).body
const charges = async (customer: string) => (await billing.client.charges.list({ customer })).data.length

describe('a charge of a card that is not the saved card any more', () => {
  test('within the life of its key at Stripe, if the payment that saved the card is lost too', async () => {
    const { external_id, customer, saved, order_id } = await charged()
    await forget(order_id, saved)
    const { checkout_status, idempotent_replay } = await repeat(external_id)
    assert.deepEqual([checkout_status, idempotent_replay, await charges(customer)], ['succeeded', true, 1])
  })

  test('an order whose request never arrived at Stripe is not cancelled before the whole account was searched', async () => {
    const { external_id, saved, order_id } = await charged('pm_sim_prepare_drop_before')
    await forget(order_id, saved)
    const begun = await repeat(external_id)
    assert.equal(begun.checkout_status, 'processing')
    await db.query('update orders set lease_until = null where order_id = $1', [begun.order_id])
    const found = await ordersInProgress.find(db.query, begun.order_id)
    const taken = await ordersInProgress.take(db, found!, 60_000)
    assert.equal((await look(billingContext(billing.server.app), CHARGE, taken!)).status, 'succeeded')
  })

  test('after the life of its key, if the card was saved by a payment that is here', async () => {
    const { external_id, customer, order_id } = await charged()
    const { payment_method } = await savedCard(billing.client)
    await payWith(external_id, payment_method, '2021-01-01T00:00:00Z')
    await billing.stripe.control('/clock', { advance_ms: 48 * 3_600_000 })
    await forget(order_id)
    const { checkout_status, idempotent_replay } = await repeat(external_id)
    assert.deepEqual([checkout_status, idempotent_replay, await charges(customer)], ['succeeded', true, 1])
  })
})
