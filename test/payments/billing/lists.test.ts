// GET /consumables, /refunds and /disputes: every change once, by windows, newest first, and each organization's own.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { recordDispute } from '../../../src/payments/billing/ledger/disputes.ts'
import { describeServer } from '../../data/public/description.ts'
import { startShop } from '../../support/billing.ts'
import { column, columns } from '../../support/rows.ts'
import type { Json } from '../../support/server.ts'

const { billing, shop } = await startShop()
const customer = await shop.customer()

const BEGINNING = '1970-01-01T00:00:00Z'

async function get(path: string, query: Record<string, string> = {}, of = shop) {
  const headers = ['service-secret-key', of.key]
  return billing.server.call(`/${of.id}/v1${path}?${new URLSearchParams(query)}`, { headers })
}

async function walk(path: string, query: Record<string, string> = {}) {
  const items: Json[] = []
  let total: number | undefined
  let horizon: string | undefined
  for (let cursor: string | undefined; ; ) {
    const { status, body, text, headers } = await get(path, { ...query, ...(cursor && { cursor }) })
    assert.equal(status, 200, text)
    total ??= body.pagination.total
    horizon ??= headers['x-sync-horizon'] as string | undefined
    assert.deepEqual([body.pagination.total, headers['x-sync-horizon']], [total, horizon])
    items.push(...body.data)
    cursor = body.pagination.next_cursor
    if (!body.pagination.has_more) break
  }
  assert.equal(items.length, total)
  return { items, horizon }
}

/** What changed since a horizon, and the next one. */
async function changes(path: string, since = BEGINNING) {
  // The horizon may lag by a second.
  await sleep(1100)
  const { horizon } = await walk(path, { 'filter[updated_at.to]': BEGINNING })
  const window = { 'filter[updated_at.from]': since, 'filter[updated_at.to]': horizon!, limit: '2' }
  return { items: (await walk(path, window)).items, horizon: horizon! }
}

const charge = async () => (await shop.charge(customer, { amount: '10.00' })).body.order_id as string

test('consumables: granted, then revoked, each change in one window; newest first without one', async () => {
  const orders = [await charge(), await charge(), await charge(), await charge(), await charge()]
  const first = await changes('/consumables')
  assert.deepEqual(column(first.items, 'order_id'), orders)
  const newest = await walk('/consumables', { limit: '2' })
  assert.deepEqual(column(newest.items, 'order_id'), orders.toReversed())
  await shop.refund(customer, orders[1]!)
  const second = await changes('/consumables', first.horizon)
  assert.deepEqual(columns(second.items, 'order_id', 'is_active', 'external_id'), [[orders[1], false, customer]])
  assert.deepEqual((await changes('/consumables', second.horizon)).items, [])
})

test('refunds: those with an outcome', async () => {
  const { horizon } = await changes('/refunds')
  const order = await charge()
  const { body } = await shop.refund(customer, order, { amount: '2.50', idempotency_key: 'part' })
  const { items } = await changes('/refunds', horizon)
  assert.deepEqual(
    items.map(({ refund_id, order_id, amount, refund_status }) => [refund_id, order_id, amount, refund_status]),
    [[body.refund_id, order, 2.5, 'succeeded']],
  )
})

test('disputes: opened, then lost with the money withdrawn', async () => {
  const order = await charge()
  const owner = { organization_id: shop.id, order_id: order }
  const at = '2026-01-01T00:00:00Z'
  const told = {
    ...{
      disputeId: 'dp_1',
      chargeTransactionId: 'ch_1',
      amountMinor: 1000n,
      currencyCode: 'USD',
      reason: 'fraudulent',
      at,
    },
    ...{ fundsWithdrawn: false, reinstatedMinor: 0n },
  }
  const context = { db: billing.db, log: billing.server.app.log }
  await recordDispute(context, owner, { ...told, status: 'open' })
  const first = await changes('/disputes')
  assert.deepEqual(columns(first.items, 'dispute_id', 'dispute_status', 'external_id'), [['dp_1', 'open', customer]])
  await recordDispute(context, owner, { ...told, status: 'lost', fundsWithdrawn: true })
  const second = await changes('/disputes', first.horizon)
  assert.deepEqual(
    second.items.map(({ dispute_status, funds_withdrawn_at }) => [dispute_status, typeof funds_withdrawn_at]),
    [['lost', 'string']],
  )
  const revoked = (await walk('/consumables')).items.find(({ order_id }) => order_id === order)
  assert.equal(revoked.is_active, false)
})

test('an organization sees its own; another window’s cursor is refused; the response is what is declared', async () => {
  const other = await billing.organization()
  const description = await describeServer(billing.server)
  for (const path of ['/consumables', '/refunds', '/disputes']) {
    assert.deepEqual((await get(path, {}, other)).body, { data: [], pagination: { has_more: false, total: 0 } })
    const operation = description.operations.find((one) => one.path === `/{org_id}/v1${path}`)!
    description.check(operation, await get(path))
    description.check(operation, await get(path, { limit: '501' }))
  }
  const { next_cursor: cursor } = (await get('/consumables', { limit: '1' })).body.pagination
  for (const response of [
    await get('/consumables', { cursor, 'filter[updated_at.from]': BEGINNING }),
    await get('/refunds', { cursor }),
    await get('/consumables', { cursor }, other),
  ]) {
    assert.deepEqual([response.status, response.headers['x-error-code']], [400, 'invalid_cursor'])
  }
})
