// Reconciling with Stripe's API: refunds and disputes that were made there reach the order, once.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { reconcile } from '../../../src/payments/billing/reconcile/reconcile.ts'
import { findEither, resolve } from '../../../src/payments/billing/reconcile/resolve.ts'
import { adoptRefundsOfCharge } from '../../../src/payments/billing/refund/adopt-of-charge.ts'
import { MERCHANT, startStripeBilling } from '../../support/stripe-billing.ts'
import { HandClock } from '../../support/time.ts'

// Only the reconciliation finds what was done there.
const billing = await startStripeBilling({}, { worker: false })
after(() => billing.stop())
const shop = await billing.shop()

// Its pauses take no time.
const context = { ...billingContext(billing.server.app), clock: new HandClock() }
const compare = (sinceMs = -3_600_000) => reconcile(context, new Date(Date.now() + sinceMs).toISOString())

async function charged(card?: string) {
  const { external_id } = await shop.customerWithCard(card)
  const body = { external_id, idempotency_key: 'k', amount: '10.50', currency_code: 'USD' }
  const { order_id } = (await shop.post('/payment/one_off_charge', body)).body
  const [order] = await billing.db.query('select charge_transaction_id from orders where order_id = $1', [order_id])
  return { external_id, order_id, payment: order!.charge_transaction_id! }
}

const rowsOf = async (order_id: string) =>
  (await shop.report({ order_id })).map(({ psp_transaction_type, status, amount }) => [
    psp_transaction_type,
    status,
    amount,
  ])

const feesOf = (order_id: string) =>
  billing.db.query(
    `select f.move, f.fee from report_transactions r join provider_fees f
       on (f.organization_id, f.transaction_id) = (r.organization_id, r.psp_transaction_id)
     where r.order_id = $1 order by r.trx_created_at`,
    [order_id],
  )

const change = (orderId: string, what: string, table: 'orders' | 'refunds' = 'refunds') =>
  billing.db.query(`update ${table} set ${what} where order_id = $1`, [orderId])

test('fees without a notification are read; a key that may not read them delays nothing', async () => {
  const { order_id, payment } = await charged()
  await billing.client.refunds.create({ payment_intent: payment, amount: 400 })
  await billing.stripe.control('/faults', { path: '/v1/balance_transactions', kind: 'forbidden' })
  const { adopted, findings } = await compare()
  assert.deepEqual([adopted, findings, await feesOf(order_id)], [1, [], []])
  await compare()
  assert.deepEqual(await feesOf(order_id), [
    { move: 'sale', fee: '0.60' },
    { move: 'refund', fee: '0.00' },
  ])
})

test('a look-up that fails while the sides are compared is repeated', async () => {
  const { order_id, payment } = await charged()
  const fault = { method: 'GET', kind: 'error_before', times: 4 }
  await billing.stripe.control('/faults', { ...fault, path: `/v1/payment_intents/${payment}` })
  // Made before the time to compare from, so that the list lacks it.
  await change(order_id, `settled_at = settled_at + interval '2 days'`, 'orders')
  const { findings } = await compare(86_400_000)
  await change(order_id, `settled_at = settled_at - interval '2 days'`, 'orders')
  assert.deepEqual(findings, [])
})

test('a refund made at Stripe is adopted, and a full one revokes the consumable', async () => {
  const { external_id, order_id, payment } = await charged()
  await billing.client.refunds.create({ payment_intent: payment, amount: 400 })
  await compare()
  assert.equal((await shop.consumables(external_id))[0].is_active, true)
  await billing.client.refunds.create({ payment_intent: payment })
  const { findings } = await compare()
  assert.deepEqual(findings, [])
  assert.equal((await compare()).adopted, 0)
  assert.equal((await shop.consumables(external_id))[0].is_active, false)
  assert.deepEqual(await rowsOf(order_id), [
    ['sale', 'succeeded', 10.5],
    ['refund', 'refunded', 4],
    ['refund', 'refunded', 6.5],
  ])
})

test('a refund made at Stripe of a charge that an operator resolved as succeeded is adopted', async () => {
  const { external_id, customer } = await shop.customerWithCard('pm_sim_confirm_drop_after')
  const { order_id } = (await shop.charge(external_id)).body
  await billing.db.query('update orders set lease_until = null where order_id = $1', [order_id])
  const unreachable = { ...context.providers, of: async () => undefined }
  await resolve(
    { ...context, providers: unreachable },
    await findEither(billing.db, order_id),
    'succeeded',
    'seen in the dashboard',
  )
  const [payment] = (await billing.client.paymentIntents.list({ customer })).data
  await billing.client.refunds.create({ payment_intent: payment!.id })
  const { adopted, findings } = await compare()
  assert.deepEqual([adopted, findings], [1, []])
  assert.equal((await shop.consumables(external_id))[0].is_active, false)
  assert.deepEqual(await rowsOf(order_id), [
    ['sale', 'succeeded', 10.5],
    ['refund', 'refunded', 10.5],
  ])
})

test('a refund made at Stripe while ours is pending is adopted when ours has succeeded', async () => {
  const { external_id, order_id, payment } = await charged('pm_sim_refund_pending_60000ms')
  const own = await shop.post('/payment/refund', { external_id, order_id, amount: '4', idempotency_key: 'r' })
  assert.equal(own.body.refund_status, 'processing')
  await billing.client.refunds.create({ payment_intent: payment, amount: 250 })
  await compare()
  await billing.stripe.control('/clock', { advance_ms: 120_000 })
  const { findings } = await compare()
  assert.deepEqual(findings, [])
  assert.deepEqual((await rowsOf(order_id)).sort(), [
    ['refund', 'refunded', 2.5],
    ['refund', 'refunded', 4],
    ['sale', 'succeeded', 10.5],
  ])
})

test('a dispute opened at Stripe takes the consumable, and one that is won gives it back', async () => {
  const { external_id, order_id, payment } = await charged()
  const { latest_charge } = await billing.client.paymentIntents.retrieve(payment)
  const { id } = await billing.stripe.control<{ id: string }>('/disputes', {
    charge: latest_charge,
    reason: 'fraudulent',
  })
  assert.equal((await compare()).adopted, 1)
  assert.equal((await shop.consumables(external_id))[0].is_active, false)
  await billing.stripe.control(`/disputes/${id}/close`, { status: 'won' })
  await compare()
  assert.equal((await shop.consumables(external_id))[0].is_active, true)
  assert.deepEqual(await rowsOf(order_id), [
    ['sale', 'succeeded', 10.5],
    ['chargeback', 'refunded', 10.5],
    ['chargeback_reversal', 'succeeded', 10.5],
  ])
})

/** What a notification about the charge does. */
async function adopt(payment: string): Promise<void> {
  const provider = await context.providers.of(shop.id, 'stripe', MERCHANT)
  await adoptRefundsOfCharge(
    context,
    provider!,
    { psp: 'stripe', merchantId: MERCHANT, organizationId: shop.id },
    payment,
  )
}

test('a refund that was made at Stripe and is pending there stays in progress until Stripe decides', async () => {
  const { order_id, payment } = await charged('pm_sim_refund_pending_60000ms')
  await billing.client.refunds.create({ payment_intent: payment, amount: 250 })
  await adopt(payment)
  // Two looks, after the request of a refund of ours would have arrived, and minutes apart.
  await change(order_id, `created_at = created_at - interval '1 day'`)
  await adopt(payment)
  await change(order_id, `not_found_at = not_found_at - interval '1 hour'`)
  await adopt(payment)
  assert.deepEqual(await billing.db.query('select status from refunds where order_id = $1', [order_id]), [
    { status: 'processing' },
  ])
  await billing.stripe.control('/clock', { advance_ms: 120_000 })
  await adopt(payment)
  assert.deepEqual(await rowsOf(order_id), [
    ['sale', 'succeeded', 10.5],
    ['refund', 'refunded', 2.5],
  ])
})

test('a refund that was made at Stripe while the outcome of ours is not known is adopted at once', async () => {
  const { external_id, order_id, payment } = await charged()
  await billing.stripe.control('/faults', { method: 'POST', path: '/v1/refunds', kind: 'error_before' })
  const own = await shop.post('/payment/refund', { external_id, order_id, amount: '4', idempotency_key: 'r' })
  assert.equal(own.body.refund_status, 'processing')
  await billing.client.refunds.create({ payment_intent: payment, amount: 250 })
  await adopt(payment)
  assert.deepEqual(await rowsOf(order_id), [
    ['sale', 'succeeded', 10.5],
    ['refund', 'refunded', 2.5],
  ])
  const again = await shop.post('/payment/refund', { external_id, order_id, amount: '4', idempotency_key: 'r' })
  assert.deepEqual([again.body.refund_status, again.body.amount_refunded], ['processing', 2.5])
  const [listed] = (await shop.report({ order_id })).slice(1)
  const [row] = await billing.db.query(
    `select status, updated_at >= created_at and settled_at is not null as is_stamped from refunds
     where order_id = $1 and origin = 'provider'`,
    [order_id],
  )
  assert.deepEqual([listed.status, row], ['refunded', { status: 'succeeded', is_stamped: 't' }])
})

test('a refund that was made at Stripe before the time to compare from is found there', async () => {
  const { order_id, payment } = await charged()
  await billing.client.refunds.create({ payment_intent: payment, amount: 250 })
  await adopt(payment)
  await change(order_id, `settled_at = settled_at + interval '1 day'`)
  const { match, findings } = await compare(3_600_000)
  assert.deepEqual([match, findings], [1, []])
})

test('a charge of the same number in another currency at Stripe is reported', async () => {
  const { order_id, payment } = await charged()
  const charge = await billing.client.paymentIntents.retrieve(payment)
  await billing.stripe.control('/objects', { objects: [{ ...charge, currency: 'eur' }] })
  const { findings } = await compare()
  await billing.stripe.control('/objects', { objects: [charge] })
  assert.deepEqual(
    findings.map(({ difference, reference, what }) => [difference, reference, what]),
    [['mismatch', order_id, '1050 minor units of EUR there, 10.50 USD here']],
  )
})

test('a dispute that was opened a hundred days before the time to compare from and is decided after it is found', async () => {
  const { external_id, payment } = await charged()
  const { latest_charge } = await billing.client.paymentIntents.retrieve(payment)
  const { id } = await billing.stripe.control<{ id: string }>('/disputes', { charge: latest_charge })
  await compare()
  assert.equal((await shop.consumables(external_id))[0].is_active, false)
  await billing.stripe.control('/clock', { advance_ms: 101 * 86_400_000 })
  await billing.stripe.control(`/disputes/${id}/close`, { status: 'won' })
  await compare(100 * 86_400_000)
  assert.equal((await shop.consumables(external_id))[0].is_active, true)
})
