// Charges through Stripe that a restored backup forgot, with keys that Stripe has forgotten too: none is made twice.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { reconcile } from '../../../src/payments/billing/reconcile/reconcile.ts'
import { disconnectAccount } from '../../../src/payments/providers/connect.ts'
import { column } from '../../support/rows.ts'
import { MERCHANT, startStripeBilling } from '../../support/stripe-billing.ts'
import { until } from '../../support/time.ts'
import { forgetOrders, markUnlisted, unlisted } from './restored.ts'

const DAY_MS = 86_400_000

const billing = await startStripeBilling()
after(() => billing.stop())
const shop = await billing.shop()

const compare = (since = new Date(Date.now() - DAY_MS).toISOString()) =>
  reconcile(billingContext(billing.server.app), since)

/** Orders that a restored backup does not have, once its accounts were compared. */
async function forget(orderIds: string[]): Promise<void> {
  await forgetOrders(billing.db, orderIds)
  await markUnlisted(billing.db, shop.id)
  await compare()
}

const paymentsOf = async (customer: string) => (await billing.client.charges.list({ customer })).data

/** A charge with the key "k" that was disputed, and that the backup does not have. */
async function disputedAndForgotten() {
  const bought = await shop.customerWithCard()
  const { order_id } = (await shop.charge(bought.external_id, { idempotency_key: 'k' })).body
  const [disputed] = await paymentsOf(bought.customer)
  await billing.stripe.control('/disputes', { charge: disputed!.id })
  await forget([order_id])
  return bought
}

// First, while Stripe's clock is ours.
test('reconcile names what Stripe has and the backup has not, and finds the rest equal', async () => {
  const [kept, lost] = [await shop.customerWithCard(), await shop.customerWithCard()]
  const here = await shop.charge(kept.external_id)
  const gone = await shop.charge(lost.external_id)
  await forgetOrders(billing.db, [gone.body.order_id])
  await markUnlisted(billing.db, shop.id)
  const report = await compare()
  const text = JSON.stringify(report, (_key, value) => (typeof value === 'bigint' ? String(value) : value))
  assert.ok(text.includes(gone.body.order_id), text)
  assert.ok(!text.includes(here.body.order_id), text)
  assert.deepEqual(
    await unlisted(billing.db, shop.id),
    [],
    'a lost charge that no caller repeats does not keep the state',
  )
})

test('an account that is not connected again counts as not listed, and reconcile and the 503 name it', async () => {
  const [connected, disconnected] = [await billing.shop(), await billing.shop()]
  const { external_id } = await disconnected.customerWithCard()
  await disconnectAccount(billing.db.query, { organizationId: disconnected.id, psp: 'stripe', merchantId: MERCHANT })
  for (const { id } of [connected, disconnected]) await markUnlisted(billing.db, id)
  const { not_compared } = await compare()
  assert.ok(not_compared.some(({ organization_id }) => organization_id === disconnected.id))
  assert.deepEqual(await unlisted(billing.db, connected.id), [])
  assert.deepEqual(await unlisted(billing.db, disconnected.id), [MERCHANT])
  const { status, headers, body } = await disconnected.charge(external_id)
  assert.deepEqual([status, headers['x-error-code']], [503, 'restore_not_reconciled'])
  assert.match(body.message, /stripe stripe-test/)
})

test('a reconciliation that begins less than an hour before the backup does not count', async () => {
  await markUnlisted(billing.db, shop.id)
  await compare(new Date(Date.now() - 3_000_000).toISOString())
  assert.deepEqual(await unlisted(billing.db, shop.id), [MERCHANT])
  await compare()
  assert.deepEqual(await unlisted(billing.db, shop.id), [])
})

describe('a charge that the backup does not have', () => {
  test('gets 503 before its account was listed, and nothing is charged', async () => {
    const { external_id, customer } = await shop.customerWithCard()
    const first = await shop.charge(external_id, { idempotency_key: 'k' })
    await forgetOrders(billing.db, [first.body.order_id])
    await markUnlisted(billing.db, shop.id)
    const refused = await shop.charge(external_id, { idempotency_key: 'k' })
    assert.deepEqual([refused.status, refused.headers['x-error-code']], [503, 'restore_not_reconciled'])
    assert.equal((await paymentsOf(customer)).length, 1)
    await compare()
    const again = await shop.charge(external_id, { idempotency_key: 'k' })
    assert.deepEqual([again.body.checkout_status, again.body.idempotent_replay], ['succeeded', true])
    assert.equal((await paymentsOf(customer)).length, 1)
  })

  test('is listed by a worker after a failover, without an operator', async () => {
    const { external_id, customer } = await shop.customerWithCard()
    const first = await shop.charge(external_id, { idempotency_key: 'k' })
    await forgetOrders(billing.db, [first.body.order_id])
    await markUnlisted(billing.db, shop.id)
    await billing.db.query(`update unlisted_accounts set cause = 'failover' where organization_id = $1`, [shop.id])
    await until('the account is listed', async () => (await unlisted(billing.db, shop.id)).length === 0)
    const again = await shop.charge(external_id, { idempotency_key: 'k' })
    assert.deepEqual([again.body.checkout_status, again.body.idempotent_replay], ['succeeded', true])
    assert.equal((await paymentsOf(customer)).length, 1)
  })

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
    await forgetOrders(billing.db, [first.body.order_id])
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
    const { external_id, customer } = await disputedAndForgotten()
    const again = await shop.charge(external_id, { idempotency_key: 'k' })
    assert.equal(again.body.checkout_status, 'succeeded', again.text)
    assert.equal((await shop.consumables(external_id))[0].is_active, false)
    const rows = await shop.report({ order_id: again.body.order_id })
    assert.deepEqual(column(rows, 'psp_transaction_type'), ['sale', 'chargeback'])
    assert.equal((await paymentsOf(customer)).length, 1)
  })

  test('waits for the list of its disputes, unless the key may not read disputes', async () => {
    const [unread, forbidden] = [await disputedAndForgotten(), await disputedAndForgotten()]
    const fails = { method: 'GET', path: '/v1/disputes', times: 100 }
    await billing.stripe.control('/faults', { ...fails, kind: 'error_before' })
    const waiting = await shop.charge(unread.external_id, { idempotency_key: 'k' })
    assert.equal(waiting.body.checkout_status, 'processing', waiting.text)
    await billing.stripe.control('/faults/clear')
    const repeated = () => shop.charge(unread.external_id, { idempotency_key: 'k' })
    await until('it is adopted', async () => (await repeated()).body.checkout_status === 'succeeded')
    assert.equal((await shop.consumables(unread.external_id))[0].is_active, false)
    await billing.stripe.control('/faults', { ...fails, kind: 'forbidden' })
    const adopted = await shop.charge(forbidden.external_id, { idempotency_key: 'k' })
    await billing.stripe.control('/faults/clear')
    assert.equal(adopted.body.checkout_status, 'succeeded', adopted.text)
    assert.equal((await shop.consumables(forbidden.external_id))[0].is_active, true)
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

  test('is adopted by an operator; the caller then gets that order, and nothing is listed', async () => {
    const { external_id, customer } = await shop.customerWithCard()
    // The payment that is here names the customer at Stripe.
    await billing.db.query('update report_transactions set psp_customer_id = $2 where external_id = $1', [
      external_id,
      customer,
    ])
    const first = await shop.charge(external_id, { idempotency_key: 'k' })
    await forget([first.body.order_id])
    const path = `/organizations/${shop.id}/lost-movements`
    const listed = async () => (await billing.server.admin(`${path}?limit=100`)).body.data as Record<string, string>[]
    const [lost] = (await listed()).filter(({ provider_customer }) => provider_customer === customer)
    assert.deepEqual([lost?.type, lost?.state, lost?.reference], ['charge', 'moved', first.body.order_id])
    const adopted = await billing.server.admin(`${path}/stripe/${MERCHANT}/${lost!.transaction_id}/adopt`, {
      method: 'POST',
      body: {},
    })
    assert.deepEqual([adopted.status, adopted.body.external_id, adopted.body.status], [200, external_id, 'succeeded'])
    assert.equal((await shop.consumables(external_id)).length, 1)
    const again = await shop.charge(external_id, { idempotency_key: 'k' })
    assert.deepEqual([again.body.order_id, again.body.idempotent_replay], [adopted.body.order_id, true])
    const left = (await listed()).filter(({ provider_customer }) => provider_customer === customer)
    assert.deepEqual([left, (await paymentsOf(customer)).length], [[], 1])
    const twice = await billing.server.admin(`${path}/stripe/${MERCHANT}/${lost!.transaction_id}/adopt`, {
      method: 'POST',
      body: {},
    })
    assert.equal(twice.status, 409)
  })

  test('that an operator accepted as made elsewhere is not reported, and still not made again', async () => {
    const { external_id, customer } = await shop.customerWithCard()
    const first = await shop.charge(external_id, { idempotency_key: 'k' })
    await forget([first.body.order_id])
    // Other organizations of this file have the same account, and have accepted nothing.
    const reported = async () =>
      (await compare()).findings.filter(({ reference }) => reference === first.body.order_id).length
    const before = await reported()
    const [payment] = (await billing.client.paymentIntents.list({ customer })).data
    const path = `/organizations/${shop.id}/lost-movements/stripe/${MERCHANT}/${payment!.id}/accept`
    const body = { because: 'the old server made it' }
    assert.equal((await billing.server.admin(path, { method: 'POST', body })).status, 200)
    assert.equal(await reported(), before - 1)
    const again = await shop.charge(external_id, { idempotency_key: 'k' })
    assert.deepEqual([again.body.idempotent_replay, (await paymentsOf(customer)).length], [true, 1])
  })

  test('that an operator accepted leaves no refund of it to decide about, also one that is found later', async () => {
    const { external_id, customer } = await shop.customerWithCard()
    const first = await shop.charge(external_id, { idempotency_key: 'k', amount: '9.00' })
    const paidBack = await shop.refund(external_id, first.body.order_id, { amount: '2.00', idempotency_key: 'r' })
    assert.equal(paidBack.status, 200, paidBack.text)
    const path = `/organizations/${shop.id}/lost-movements`
    const listed = async () => (await billing.server.admin(`${path}?limit=100`)).body.data as Record<string, string>[]
    const others = new Set((await listed()).map(({ transaction_id }) => transaction_id))
    const open = async () => (await listed()).filter(({ transaction_id }) => !others.has(transaction_id))
    await forget([first.body.order_id])
    const [payment] = (await billing.client.paymentIntents.list({ customer })).data
    assert.deepEqual((await open()).map(({ type }) => type).sort(), ['charge', 'refund'])
    // Other organizations of this file have the same account, and have accepted nothing.
    const reported = async () =>
      (await compare()).findings.filter(({ reference }) => reference === paidBack.body.refund_id).length
    const before = await reported()
    const accepted = `${path}/stripe/${MERCHANT}/${payment!.id}/accept`
    const body = { because: 'the old server' }
    assert.equal((await billing.server.admin(accepted, { method: 'POST', body })).status, 200)
    await billing.client.refunds.create({ payment_intent: payment!.id, amount: 300 })
    assert.deepEqual([await reported(), await open()], [before - 1, []])
  })

  test('a new purchase of the same customer is charged', async () => {
    const { external_id, customer } = await shop.customerWithCard()
    const first = await shop.charge(external_id, { idempotency_key: 'k' })
    await forget([first.body.order_id])
    assert.equal((await shop.charge(external_id, { idempotency_key: 'new' })).body.checkout_status, 'succeeded')
    assert.equal((await paymentsOf(customer)).length, 2)
  })
})
