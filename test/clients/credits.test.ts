// The JavaScript client's credits, automatic top-ups and lists of the billing API, against a server.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Tundish } from '../../clients/js/src/index.ts'
import { startBilling } from '../support/billing.ts'
import { withCredits } from '../support/credits.ts'
import { columns } from '../support/rows.ts'

const server = await startBilling()
after(() => server.stop())

async function openShop() {
  const shop = await withCredits(server.db, await server.organization())
  const { billing } = new Tundish({ url: server.server.url, organization: { id: shop.id, key: shop.key } })
  return { billing, externalId: await shop.customer(), id: shop.id }
}

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const one of items) found.push(one)
  return found
}

test('credits are granted and adjusted once for each key, and each entry comes once', async () => {
  const { billing, externalId } = await openShop()
  const { credits } = billing
  const use = { externalId, unit: 'tokens' }
  const metadata = { amount: 5, balance: 1.5 }
  const grant = { ...use, amount: '12', idempotencyKey: 'g', expiresAt: '2999-01-01T00:00:00Z', metadata }
  const first = await credits.grant(grant)
  const second = await credits.grant(grant)
  assert.deepEqual([first.balance, second.balance, second.idempotent_replay], ['12', '12', true])
  assert.equal(second.grant_id, first.grant_id)
  const adjusted = await credits.adjust({ ...use, amount: '-2', reason: 'Outage', idempotencyKey: 'a' })
  assert.equal(adjusted.available, '10')
  for (let n = 0; n < 3; n += 1) await credits.spend({ ...use, amount: '1', idempotencyKey: `s${n}` })
  const entries = await all(credits.entries({ externalId }))
  assert.deepEqual(columns(entries, 'amount', 'balance'), [
    ['12', '12'],
    ['-2', '10'],
    ['-1', '9'],
    ['-1', '8'],
    ['-1', '7'],
  ])
  assert.deepEqual([entries[0]!.metadata, entries[1]!.reason], [metadata, 'Outage'])
  assert.deepEqual(await all(credits.entries({ unit: 'tokens', after: entries[2]!.created_at })), entries.slice(3))
})

test('the rule of an automatic top-up is set, listed and removed', async () => {
  const { billing, externalId } = await openShop()
  const { topUps } = billing.credits
  const rule = {
    below: '1',
    amount: '9.99',
    currencyCode: 'USD',
    grants: '1000',
    expiresAfter: '90d',
    mostPerDay: 1,
    mostPerMonth: 3,
  }
  const set = await topUps.set({ externalId, unit: 'tokens', ...rule })
  const { status, below, amount, grants, expires_after, most_per_month } = set
  assert.deepEqual(
    [status, below, amount, grants, expires_after, most_per_month],
    ['on', '1', '9.99', '1000', '2160h', 3],
  )
  assert.deepEqual(await topUps.list(externalId), [set])
  await topUps.remove({ externalId, unit: 'tokens' })
  assert.deepEqual(await topUps.list(externalId), [])
  await assert.rejects(topUps.remove({ externalId, unit: 'tokens' }), { code: 'unknown_top_up' })
})

test('consumables and refunds are listed with exact amounts, by pages and by what changed', async () => {
  const { billing, externalId, id } = await openShop()
  const purchase = { externalId, amount: '10.50', currencyCode: 'USD' }
  const orders: string[] = []
  for (const idempotencyKey of ['one', 'two', 'three']) {
    const { order_id } = await billing.charge({ ...purchase, idempotencyKey })
    orders.push(order_id!)
  }
  await billing.refund({ externalId, orderId: orders[0]!, amount: '0.50', idempotencyKey: 'r' })
  const consumables = await all(billing.consumables.list({ limit: 2 }))
  assert.deepEqual(
    columns(consumables, 'order_id', 'amount'),
    orders.toReversed().map((order) => [order, '10.50']),
  )
  const refunds = await billing.refunds.list().all()
  assert.deepEqual(columns(refunds, 'order_id', 'amount', 'refund_status'), [[orders[0], '0.50', 'succeeded']])
  assert.equal(await billing.disputes.list().total(), 0)
  assert.equal(await billing.refunds.list({ updatedFrom: '2999-01-01T00:00:00Z' }).total(), 0)
  const change = `update project_clocks set void_from = '2026-01-31T09:00:00Z', void_until = '2026-02-01T09:00:00Z'
    where project_id in (select id from projects where organization_id = $1)`
  await server.db.query(change, [id])
  const walks = ['2026-01-31T10:00:00Z', '2026-01-31T08:00:00Z'].map((updatedFrom) =>
    billing.consumables.list({ updatedFrom, limit: 2 }),
  )
  const pages = await Promise.all(walks.map((walk) => all(walk.pages())))
  const lost = '2026-01-31T09:00:00.000000Z'
  assert.deepEqual(
    pages.map((walk) => walk.map(({ voidFrom }) => voidFrom)),
    [
      [lost, undefined],
      [undefined, undefined],
    ],
  )
})
