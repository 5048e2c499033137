// A refund that the provider decides days later: it waits for nobody, and is told apart from one whose outcome nobody knows.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type Json, scrape } from '../../support/server.ts'
import { startStripeBilling } from '../../support/stripe-billing.ts'
import { eventually } from '../../support/time.ts'

const billing = await startStripeBilling()
after(() => billing.stop())
const shop = await billing.shop()

const stuckRefunds = async () => (await billing.server.admin('/refunds/stuck')).body.data
/** Refunds in progress, those pending at the provider, and the age in seconds of the oldest of the others. */
const gauges = async () => {
  const text = await scrape(billing.server)
  return ['in_progress', 'pending', 'oldest_seconds'].map((name) =>
    Number(new RegExp(`^tundish_refunds_${name} (.+)$`, 'm').exec(text)![1]),
  )
}

test('a pending refund is counted as pending, not as one that is in progress for too long', async () => {
  const { external_id } = await shop.customerWithCard('pm_sim_refund_pending_60000ms')
  const body = { external_id, idempotency_key: 'k', amount: '10.50', currency_code: 'USD' }
  const { order_id } = (await shop.post('/payment/one_off_charge', body)).body
  const refund = () => shop.post('/payment/refund', { external_id, order_id, amount: '4', idempotency_key: 'r' })
  assert.equal((await refund()).body.refund_status, 'processing')
  await billing.db.query(`update refunds set created_at = created_at - interval '3 days'`)
  assert.deepEqual(
    (await stuckRefunds()).map((one: Json) => [one.order_id, one.pending_since !== null]),
    [[order_id, true]],
  )
  assert.deepEqual(await gauges(), [1, 1, 0])

  await billing.stripe.control('/clock', { advance_ms: 120_000 })
  await billing.db.query('update refunds set next_look_at = db_clock()')
  assert.ok(await eventually(async () => (await refund()).body.refund_status === 'succeeded'))
  assert.deepEqual(await gauges(), [0, 0, 0])
})
