// POST /my_assets: the linked profile's subscriptions, one-off purchases, and consumables; nothing of another customer.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { startShop } from '../../support/billing.ts'
import { withCredits } from '../../support/credits.ts'
import { insert } from '../../support/data.ts'
import { column } from '../../support/rows.ts'

const { billing, shop } = await startShop()

const assets = async (external_id: string) => (await shop.post('/my_assets', { external_id })).body

async function pay(
  externalId: string,
  row: { order?: string; amount: string; status: string; type: string; at: string; at_provider?: string },
) {
  await billing.db.query(
    `insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at,
       amount, currency_code, status, psp, psp_transaction_type, meta_oneoff_id,
       psp_transaction_id)
     values ($1, $2, true, $3, $4, $5, $3, $6, 'USD', $7, 'stripe', $8, 'guide', $9)`,
    [
      ...[shop.id, externalId, row.at, row.order ?? randomUUID(), randomUUID()],
      ...[row.amount, row.status, row.type, row.at_provider ?? null],
    ],
  )
}

test('subscriptions as the data API lists them, one-offs with what was refunded, consumables', async () => {
  const user = await shop.customer({ profileId: 'ada' })
  const other = await shop.customer({ profileId: 'bob' })
  const project = { id: shop.projectId, organizationId: shop.id }
  await insert(billing.db, project, {
    products: [{ id: 'product' }],
    subscriptions: [
      { id: 'old', profile_id: 'ada', created_at: '2026-01-01T00:00:00Z', status: 'expired' },
      { id: 'new', profile_id: 'ada', created_at: '2026-01-02T00:00:00Z' },
      { id: 'of-bob', profile_id: 'bob' },
    ],
  })
  const order = randomUUID()
  await pay(user, { order, amount: '10.50', status: 'succeeded', type: 'sale', at: '2026-01-03T00:00:00Z' })
  await pay(user, { order, amount: '0.50', status: 'refunded', type: 'refund', at: '2026-01-04T00:00:00Z' })
  await pay(user, { amount: '7.00', status: 'failed', type: 'sale', at: '2026-01-05T00:00:00Z' })
  await pay(other, { amount: '3.00', status: 'succeeded', type: 'sale', at: '2026-01-06T00:00:00Z' })
  await shop.charge(user)
  const { subscriptions, oneoffs, consumables } = await assets(user)
  assert.deepEqual(column(subscriptions, 'id'), ['new', 'old'])
  const headers = ['Service-Secret', shop.projectKey]
  const listed = await billing.server.call('/public/v1/subscriptions?filter[profile_id]=ada', { headers })
  assert.deepEqual(subscriptions, listed.body.data)
  assert.deepEqual(oneoffs, [
    {
      oneoff_id: 'guide',
      order_id: order,
      amount: 10.5,
      amount_refunded: 0.5,
      currency_code: 'USD',
      purchased_at: '2026-01-03T00:00:00.000000Z',
    },
  ])
  assert.equal(consumables.length, 1)
})

test('of a one-off, a chargeback is no refund, and a refund that failed later does not count', async () => {
  const user = await shop.customer()
  const order = randomUUID()
  await pay(user, { order, amount: '10.50', status: 'succeeded', type: 'sale', at: '2026-02-03T00:00:00Z' })
  const refund = { order, amount: '2.00', type: 'refund', at_provider: 're_1' }
  await pay(user, { ...refund, status: 'refunded', at: '2026-02-04T00:00:00Z' })
  await pay(user, { order, amount: '8.50', status: 'refunded', type: 'chargeback', at: '2026-02-05T00:00:00Z' })
  assert.equal((await assets(user)).oneoffs[0].amount_refunded, 2)
  await pay(user, { ...refund, status: 'failed', at: '2026-02-06T00:00:00Z' })
  const { text } = await shop.post('/my_assets', { external_id: user })
  assert.match(text, /"amount":10\.50,"amount_refunded":0\.00,/)
})

test('a customer without a profile, or who is not known, has empty groups', async () => {
  for (const user of [await shop.customer(), 'nobody']) {
    assert.deepEqual(await assets(user), { subscriptions: [], oneoffs: [], consumables: [] })
  }
})

test('credits are listed only in an organization that has a unit', async () => {
  const credited = await withCredits(billing.db, await billing.organization())
  const user = await credited.customer()
  const creditsOf = async (external_id: string) => (await credited.post('/my_assets', { external_id })).body.credits
  for (const customer of [user, 'nobody']) assert.deepEqual(await creditsOf(customer), [])
  await credited.credits('grant', { external_id: user, amount: 5 })
  const balance = { unit: 'tokens', balance: 5, held: 0, available: 5, expires: [] }
  assert.deepEqual(await creditsOf(user), [balance])
  assert.equal('credits' in (await assets(user)), false)
})
