// A restored backup that has forgotten what Stripe has not decided yet: nothing is cancelled here, or moved twice there.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { ordersInProgress } from '../../../src/payments/billing/charge/row.ts'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { CHARGE } from '../../../src/payments/billing/kinds.ts'
import { checkStatus } from '../../../src/payments/billing/movement/check-status.ts'
import { reconcile } from '../../../src/payments/billing/reconcile/reconcile.ts'
import { startStripeBilling } from '../../support/stripe-billing.ts'
import { markUnlisted, unlisted } from './restored.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const DAYS_MS = 20 * DAY_MS

const billing = await startStripeBilling({}, { worker: false })
after(() => billing.stop())
const { db } = billing

const context = billingContext(billing.server.app)
const compare = () => reconcile(context, new Date(Date.now() - 2 * HOUR_MS).toISOString())
const advance = (ms: number) => billing.stripe.control('/clock', { advance_ms: ms })

/** Its own shop with a customer, because each test marks its organization. */
async function open(token: string) {
  const shop = await billing.shop()
  const { external_id, customer } = await shop.customerWithCard(token)
  return {
    ...shop,
    external_id,
    /** What `tundish restore` marks. */
    mark: () => markUnlisted(db, shop.id),
    isMarked: async () => (await unlisted(db, shop.id)).length > 0,
    payments: async () => (await billing.client.paymentIntents.list({ customer })).data.map(({ status }) => status),
    refunds: async () =>
      (await billing.client.refunds.list({ limit: 100 })).data.filter((one) => one.customer === customer),
  }
}

async function lookAt(orderId: string): Promise<string> {
  await db.query('update orders set lease_until = null where order_id = $1', [orderId])
  const found = await ordersInProgress.find(db.query, orderId)
  const taken = await ordersInProgress.take(db, found!, 5_000)
  return (await checkStatus(context, CHARGE, taken!)).status
}

test('an order whose handle the backup lacks is not cancelled while Stripe processes its payment', async () => {
  const shop = await open('pm_sim_processing_60000ms')
  const { order_id } = (await shop.charge(shop.external_id)).body
  await db.query('update orders set provider_handle = null where order_id = $1', [order_id])
  await shop.mark()
  await compare()
  assert.equal(await lookAt(order_id), 'processing')
  await advance(2 * 60_000)
  assert.equal(await lookAt(order_id), 'succeeded')
})

test('an order whose prepared payment is not known here is cancelled there, too', async () => {
  const shop = await open('pm_sim_prepare_drop_after')
  const { order_id, checkout_status } = (await shop.charge(shop.external_id)).body
  assert.equal(checkout_status, 'processing')
  assert.equal(await lookAt(order_id), 'cancelled')
  assert.deepEqual(await shop.payments(), ['canceled'])
})

test('a refund and a charge that are pending and that the backup lacks are not made again, even after Stripe forgot their keys', async () => {
  const [paid, paying] = [
    await open(`pm_sim_refund_pending_${DAYS_MS}ms`),
    await open(`pm_sim_processing_${DAYS_MS}ms`),
  ]
  const { order_id } = (await paid.charge(paid.external_id)).body
  const refund = async () =>
    (await paid.refund(paid.external_id, order_id, { amount: '4', idempotency_key: 'r' })).body.refund_status
  const charge = async () => (await paying.charge(paying.external_id, { idempotency_key: 'k' })).body
  assert.equal(await refund(), 'processing')
  const lost = (await charge()).order_id
  await db.query('delete from order_log where refund_id is not null or order_id = $1', [lost])
  await db.query('delete from refunds where order_id = $1', [order_id])
  await db.query('delete from orders where order_id = $1', [lost])
  for (const shop of [paid, paying]) await shop.mark()
  const { adopted, findings } = await compare()
  assert.deepEqual(
    [adopted, [...new Set(findings.map(({ difference, what }) => `${difference}: ${what}`))]],
    [1, ['missing_here: 1050 minor units of USD, pending there, without a row here']],
  )
  assert.equal(await paying.isMarked(), false, 'its key is kept with what Stripe has not decided')
  await advance(2 * DAY_MS)
  assert.deepEqual([await refund(), (await charge()).checkout_status], ['processing', 'processing'])
  assert.deepEqual([(await paid.refunds()).length, await paying.payments()], [1, ['processing']])
})
