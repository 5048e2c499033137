// Charges through Stripe that a restored backup forgot, with keys that Stripe has forgotten too: none is made twice.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { reconcile } from '../../../src/payments/billing/unknown/reconcile.ts'
import { disconnectAccount } from '../../../src/payments/providers/connect.ts'
import { MERCHANT, startStripeBilling } from '../../support/stripe-billing.ts'

const DAY_MS = 86_400_000

const billing = await startStripeBilling()
after(() => billing.stop())
const shop = await billing.shop()

/** What a restored backup of the time before these orders does not have; `restored` is what `tundish restore` marks. */
async function forget(orderIds: string[], restored = true): Promise<void> {
  for (const table of ['consumables', 'refunds', 'order_log', 'report_transactions', 'orders'])
    await billing.db.query(`delete from ${table} where order_id = any($1)`, [orderIds])
  const from = restored ? `db_clock() - interval '1 hour'` : 'null'
  await billing.db.query(`update organizations set restored_from = ${from} where id = $1`, [shop.id])
}

const paymentsOf = async (customer: string) => (await billing.client.charges.list({ customer })).data

// First, while Stripe's clock is ours.
test('reconcile names what Stripe has and the backup has not, and finds the rest equal', async () => {
  const [kept, lost] = [await shop.customerWithCard(), await shop.customerWithCard()]
  const here = await shop.charge(kept.external_id)
  const gone = await shop.charge(lost.external_id)
  await forget([gone.body.order_id])
  const report = await reconcile(billingContext(billing.server.app), new Date(Date.now() - DAY_MS).toISOString())
  const text = JSON.stringify(report, (_key, value) => (typeof value === 'bigint' ? String(value) : value))
  assert.ok(text.includes(gone.body.order_id), text)
  assert.ok(!text.includes(here.body.order_id), text)
  const [organization] = await billing.db.query('select restored_from from organizations where id = $1', [shop.id])
  assert.ok(organization!.restored_from, 'the mark stays while a charge is missing')
})

test('reconcile keeps the mark of an organization whose account is not connected yet', async () => {
  const { app } = billing.server
  const [connected, unconnected] = [await billing.shop(), await billing.organization()]
  await billing.db.query(
    `update organizations set restored_from = db_clock() + interval '1 minute' where id = any($1)`,
    [[connected.id, unconnected.id]],
  )
  // Behind what the test before has left at Stripe.
  const since = new Date(Date.now() + 5000).toISOString()
  // As in production: no simulator that serves all organizations.
  const all = async () => (await app.providers.all()).filter(({ organizationId }) => organizationId !== null)
  const providers = { ...app.providers, all }
  await reconcile({ ...app, providers, providerTimeoutMs: 5000 }, since)
  const marked = await billing.db.query('select id from organizations where restored_from is not null')
  const ids = marked.map(({ id }) => id)
  assert.ok(ids.includes(unconnected.id), 'its charges at the provider were not compared')
  assert.ok(!ids.includes(connected.id))
})

test('reconcile with a simulator keeps the mark of an organization whose account was disconnected, and no other', async () => {
  const { app } = billing.server
  const [disconnected, simulated] = [await billing.shop(), await billing.organization()]
  const name = { organizationId: disconnected.id, psp: 'stripe', merchantId: MERCHANT }
  await disconnectAccount(billing.db.query, name)
  const ids = [disconnected.id, simulated.id]
  const marked = `select id from organizations where id = any($1) and restored_from is not null`
  await billing.db.query(`update organizations set restored_from = db_clock() where id = any($1)`, [ids])
  await reconcile({ ...app, providerTimeoutMs: 5000 }, new Date(Date.now() - DAY_MS).toISOString())
  assert.deepEqual(await billing.db.query(marked, [ids]), [{ id: disconnected.id }])
})

describe('a charge that the backup does not have', () => {
  test('is found at Stripe by a later reconciliation that begins after it was made', async () => {
    const { external_id } = await shop.customerWithCard()
    const first = await shop.charge(external_id, { idempotency_key: 'k' })
    await forget([first.body.order_id])
    // While Stripe's clock is ours; it stamps by the second.
    const since = new Date(Math.ceil((Date.now() + 1) / 1000) * 1000).toISOString()
    await shop.charge(external_id, { idempotency_key: 'k' })
    await billing.db.query(`update orders set settled_at = $2 where external_id = $1`, [external_id, since])
    const { findings } = await reconcile(billingContext(billing.server.app), since)
    assert.deepEqual(findings, [])
  })

  test('is adopted when its key comes again, after Stripe has forgotten the idempotency key', async () => {
    const { external_id, customer } = await shop.customerWithCard()
    const first = await shop.charge(external_id, { idempotency_key: 'k' })
    await billing.stripe.control('/clock', { advance_ms: 2 * DAY_MS })
    await forget([first.body.order_id])
    const again = await shop.charge(external_id, { idempotency_key: 'k' })
    assert.equal(again.body.checkout_status, 'succeeded', again.text)
    assert.equal((await paymentsOf(customer)).length, 1)
    assert.equal((await shop.consumables(external_id)).length, 1)
  })

  test('is adopted within a day also where nothing says that the backup was restored', async () => {
    const { external_id, customer } = await shop.customerWithCard()
    const first = await shop.charge(external_id, { idempotency_key: 'k' })
    await forget([first.body.order_id], false)
    const again = await shop.charge(external_id, { idempotency_key: 'k' })
    assert.equal(again.body.checkout_status, 'succeeded', again.text)
    assert.equal((await paymentsOf(customer)).length, 1)
  })

  test('comes back refunded when it was refunded', async () => {
    const { external_id, customer } = await shop.customerWithCard()
    const first = await shop.charge(external_id, { idempotency_key: 'k' })
    assert.equal((await shop.refund(external_id, first.body.order_id)).body.refund_status, 'succeeded')
    await billing.stripe.control('/clock', { advance_ms: 2 * DAY_MS })
    await forget([first.body.order_id])
    const again = await shop.charge(external_id, { idempotency_key: 'k' })
    assert.equal(again.body.checkout_status, 'succeeded', again.text)
    const [asset] = await shop.consumables(external_id)
    assert.equal(asset.is_active, false)
    const [charge, ...others] = await paymentsOf(customer)
    assert.deepEqual([charge?.amount_refunded, others.length], [1050, 0])
  })

  test('comes back without its consumable when its money was taken back by a dispute', async () => {
    const { external_id, customer } = await shop.customerWithCard()
    const first = await shop.charge(external_id, { idempotency_key: 'k' })
    const [disputed] = await paymentsOf(customer)
    await billing.stripe.control('/disputes', { charge: disputed!.id })
    await forget([first.body.order_id])
    const again = await shop.charge(external_id, { idempotency_key: 'k' })
    assert.equal(again.body.checkout_status, 'succeeded', again.text)
    const [asset] = await shop.consumables(external_id)
    assert.equal(asset.is_active, false)
    const rows = await shop.report({ order_id: again.body.order_id })
    assert.deepEqual(
      rows.map(({ psp_transaction_type }) => psp_transaction_type),
      ['sale', 'chargeback'],
    )
    assert.equal((await paymentsOf(customer)).length, 1)
  })

  test('that was declined is declined again without being sent to the bank again', async () => {
    const { external_id, customer } = await shop.customerWithCard('pm_card_chargeDeclinedInsufficientFunds')
    const first = await shop.charge(external_id, { idempotency_key: 'k' })
    await billing.stripe.control('/clock', { advance_ms: 2 * DAY_MS })
    await forget([first.body.order_id])
    const again = await shop.charge(external_id, { idempotency_key: 'k' })
    assert.deepEqual(
      [again.body.checkout_status, again.body.failed_message_for_user],
      ['failed', 'Your card has insufficient funds.'],
    )
    assert.equal((await paymentsOf(customer)).length, 1)
  })

  test('a new purchase of the same customer is charged', async () => {
    const { external_id, customer } = await shop.customerWithCard()
    const first = await shop.charge(external_id, { idempotency_key: 'k' })
    await forget([first.body.order_id])
    assert.equal((await shop.charge(external_id, { idempotency_key: 'new' })).body.checkout_status, 'succeeded')
    assert.equal((await paymentsOf(customer)).length, 2)
  })
})
