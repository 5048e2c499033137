// Charges and refunds that the provider has and a restored backup forgot: brought back, never granted or paid twice.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { reconcile } from '../../../src/payments/billing/reconcile/reconcile.ts'
import { refund } from '../../../src/payments/billing/refund/refund.ts'
import { refundKey } from '../../../src/payments/billing/refund/row.ts'
import { noDetails } from '../../../src/payments/providers/provider.ts'
import { startShop } from '../../support/billing.ts'
import { columns } from '../../support/rows.ts'
import { refundOf } from './in-process.ts'
import { fixedProviders, scriptedProvider } from './scripted-provider.ts'

const { billing, shop } = await startShop()

const compare = () => reconcile(billingContext(billing.server.app), '2001-01-01T00:00:00Z')

/** What a restored backup of the time before these orders does not have. */
async function forget(orderIds: string[]): Promise<void> {
  for (const table of ['consumables', 'refunds', 'order_log', 'report_transactions', 'orders'])
    await billing.db.query(`delete from ${table} where order_id = any($1)`, [orderIds])
}

/** The same for refunds whose order the backup has. */
async function forgetRefunds(orderId: string): Promise<void> {
  await billing.db.query('delete from refunds where order_id = $1', [orderId])
  await billing.db.query(`delete from report_transactions where order_id = $1 and status = 'refunded'`, [orderId])
  await billing.db.query('update orders set amount_refunded = 0, amount_refunded_hard = 0 where order_id = $1', [
    orderId,
  ])
  await billing.db.query('update consumables set is_active = true, revoked_at = null where order_id = $1', [orderId])
}

const eventsOf = async (objectId: string) =>
  (await billing.db.query('select type from events where object_id = $1 order by sequence', [objectId])).map(
    ({ type }) => type,
  )

describe('a charge whose order is lost', () => {
  test('comes back with its key, without being charged again', async () => {
    const user = await shop.customer()
    const first = (await shop.charge(user, { idempotency_key: 'k' })).body
    await forget([first.order_id])
    const again = (await shop.charge(user, { idempotency_key: 'k' })).body
    assert.deepEqual([again.checkout_status, again.idempotent_replay], ['succeeded', true])
    assert.equal((await shop.consumables(user))[0].is_active, true)
    assert.equal((await billing.ledger()).filter(({ reference }) => reference === first.order_id).length, 1)
    assert.deepEqual(await billing.ledger(again.order_id), [])
  })

  test('comes back refunded when it was refunded: nothing is granted, and nothing is left to refund', async () => {
    const user = await shop.customer()
    const first = (await shop.charge(user, { idempotency_key: 'k' })).body
    const refunded = (await shop.refund(user, first.order_id, { idempotency_key: 'r' })).body
    await forget([first.order_id])
    const { order_id } = (await shop.charge(user, { idempotency_key: 'k' })).body
    const [consumable, ...more] = await shop.consumables(user)
    assert.deepEqual([consumable.is_active, more.length], [false, 0])
    assert.deepEqual(columns(await shop.report({ order_id }), 'status', 'amount'), [
      ['succeeded', 10.5],
      ['refunded', 10.5],
    ])
    assert.deepEqual(await eventsOf(consumable.consumable_id), ['consumable.granted', 'consumable.revoked'])
    const another = await shop.refund(user, order_id, { idempotency_key: 'another' })
    assert.match(another.body.message, /^Nothing is left to refund/)
    const replay = (await shop.refund(user, order_id, { idempotency_key: 'r' })).body
    assert.deepEqual(
      [replay.refund_id, replay.refund_status, replay.idempotent_replay],
      [refunded.refund_id, 'succeeded', true],
    )
    assert.equal((await billing.ledger(refunded.refund_id)).length, 1)
  })

  test('comes back with a partial refund, and the rest can be refunded', async () => {
    const user = await shop.customer()
    const first = (await shop.charge(user, { idempotency_key: 'k' })).body
    await shop.refund(user, first.order_id, { amount: 4, idempotency_key: 'r' })
    await forget([first.order_id])
    const { order_id } = (await shop.charge(user, { idempotency_key: 'k' })).body
    assert.equal((await shop.consumables(user))[0].is_active, true)
    const rest = (await shop.refund(user, order_id)).body
    assert.deepEqual([rest.refund_status, rest.amount, rest.amount_refunded], ['succeeded', 6.5, 10.5])
  })

  test('is named by reconcile, with its refund, until the key comes again', async () => {
    const user = await shop.customer()
    const first = (await shop.charge(user, { idempotency_key: 'k' })).body
    const { refund_id } = (await shop.refund(user, first.order_id)).body
    await forget([first.order_id])
    const mine = ({ findings }: Awaited<ReturnType<typeof compare>>) =>
      findings.filter(({ reference }) => [first.order_id, refund_id].includes(reference))
    assert.deepEqual(columns(mine(await compare()), 'difference', 'type'), [
      ['missing_here', 'charge'],
      ['missing_here', 'refund'],
    ])
    await shop.charge(user, { idempotency_key: 'k' })
    assert.deepEqual(mine(await compare()), [])
  })
})

describe('a refund whose order is here', () => {
  test('is adopted by reconcile, once', async () => {
    const user = await shop.customer()
    const { order_id } = (await shop.charge(user)).body
    const { refund_id } = (await shop.refund(user, order_id)).body
    await forgetRefunds(order_id)
    const { adopted } = await compare()
    assert.equal(adopted, 1)
    assert.equal((await compare()).adopted, 0)
    assert.equal((await shop.consumables(user))[0].is_active, false)
    const [order] = await billing.db.query('select amount_refunded from orders where order_id = $1', [order_id])
    assert.equal(order!.amount_refunded, '10.50')
    const rows = await billing.db.query('select refund_id, status, origin from refunds where order_id = $1', [order_id])
    assert.deepEqual(rows, [{ refund_id, status: 'succeeded', origin: 'tundish' }])
  })

  test('that was made at the provider, not here, is adopted as the provider’s', async () => {
    const user = await shop.customer()
    const { order_id } = (await shop.charge(user)).body
    const [order] = await billing.db.query('select charge_transaction_id from orders where order_id = $1', [order_id])
    const body = { key: 'made-there', reference: 'support desk', amount_minor: '400', currency_code: 'USD' }
    const at = { merchant_id: 'merchant-1', region: 'eu', charge_transaction_id: order!.charge_transaction_id }
    await fetch(`${billing.simulator.url}/refunds`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, ...at }),
    })
    assert.equal((await compare()).adopted, 1)
    const rest = (await shop.refund(user, order_id)).body
    assert.deepEqual([rest.amount, rest.amount_refunded, rest.consumable_revoked], [6.5, 10.5, true])
    const rows = await shop.report({ order_id })
    assert.deepEqual(columns(rows, 'status', 'amount'), [
      ['succeeded', 10.5],
      ['refunded', 4],
      ['refunded', 6.5],
    ])
  })

  test('gives the next refund without a key a new one, also when the refunds before it stay forgotten', async () => {
    const user = await shop.customer()
    const { order_id } = (await shop.charge(user)).body
    await shop.refund(user, order_id, { amount: '4', soft_refund: true, idempotency_key: 'soft' })
    await shop.refund(user, order_id)
    await forgetRefunds(order_id)
    assert.equal((await compare()).adopted, 1)
    const rest = (await shop.refund(user, order_id)).body
    assert.deepEqual([rest.refund_status, rest.amount, rest.amount_refunded], ['succeeded', 4, 10.5])
    assert.equal((await billing.ledger(rest.refund_id)).length, 1)
  })

  test('is adopted once by three reconciliations at the same time', async () => {
    const user = await shop.customer()
    const { order_id } = (await shop.charge(user)).body
    await shop.refund(user, order_id)
    await forgetRefunds(order_id)
    const results = await Promise.all([compare(), compare(), compare()])
    assert.equal(
      results.reduce((sum, { adopted }) => sum + adopted, 0),
      1,
    )
    assert.equal((await shop.report({ order_id })).length, 2)
  })
})

describe('a refund that the backup forgot, of a provider that has forgotten its key', () => {
  /** Pays back under any key, for it remembers none; lists what it has. */
  function forgetful(key: string) {
    let paid = 0
    const details = { ...noDetails, psp_transaction_id: 're_1' }
    const money = { amountMinor: 400n, currencyCode: 'USD' }
    const at = '2026-01-31T22:00:00Z'
    const provider = scriptedProvider({
      refund: async ({ reference }) => {
        paid++
        return { outcome: 'succeeded', reference, ...money, details: { ...details, psp_transaction_id: 're_2' } }
      },
      refundsOf: async () => [
        { key, reference: randomUUID(), transactionId: 're_1', status: 'succeeded', ...money, at, details },
      ],
    })
    const { app } = billing.server
    const context = { ...app, providers: fixedProviders([provider]), providerTimeoutMs: 1_000 }
    return { context, paid: () => paid }
  }

  test('is found before anything is paid back again', async () => {
    const user = await shop.customer()
    const { order_id } = (await shop.charge(user)).body
    await billing.db.query(`insert into unlisted_accounts values ($1, 'stripe', 'acct_1', db_clock(), 'restore')`, [
      shop.id,
    ])
    const { context, paid } = forgetful(refundKey(shop.id, user, 'r'))
    const response = await refund(context, shop.id, refundOf(user, order_id, { amount: '4' }))
    assert.deepEqual([response.refund_status, response.idempotent_replay, paid()], ['succeeded', true, 0])
  })
})
