// The finance report by the time zone of the projects: months, closing, and the tie-out with the dashboard.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startBilling } from '../../support/billing.ts'
import { tundish } from '../../support/cli.ts'
import { assertExact } from '../../support/figures.ts'
import { uuid } from '../../support/imports.ts'
import { tundishAgain } from '../../support/resident.ts'
import type { Json } from '../../support/server.ts'

const billing = await startBilling()
after(() => billing.stop())
const { server, db } = billing
const shop = await billing.organization('down-under')

const payment = (n: number, at: string, amount: number) => ({
  record: 'payment',
  data: {
    ...{ external_id: 'ada', order_id: uuid(n), trx_id: uuid(1000 + n), trx_created_at: at, psp_date: at, amount },
    ...{ currency_code: 'NZD', status: 'succeeded', psp: 'elsewhere', psp_merchant_id: 'main' },
    ...{ psp_transaction_type: 'sale', psp_transaction_id: `ch_${n}` },
  },
})
const get = async (path: string): Promise<Json> => {
  const { status, body } = await server.admin(`/organizations/down-under/finance${path}`)
  assert.equal(status, 200, JSON.stringify(body))
  return body
}
const grossOf = async (month: string) => (await get(`?month=${month}`)).currencies.map(({ gross }: Json) => gross)
const reporting = (project: string, body: object) =>
  server.admin(`/projects/${project}/reporting`, { method: 'PUT', body })

test('months are those of the projects’ time zone; the tie-out agrees with figures in it, and in another currency', async () => {
  assert.equal((await reporting(shop.projectId, { time_zone: 'Pacific/Auckland', currency: 'NZD' })).status, 200)
  const lines = [
    { record: 'customer', data: { external_id: 'ada' } },
    // In Auckland the first is on 31 August, the second and the third are on 1 and 30 September, the last on 1 October.
    payment(1, '2025-08-31T11:59:59Z', 1),
    payment(2, '2025-08-31T12:00:00Z', 20),
    payment(3, '2025-09-30T10:59:59Z', 300),
    payment(4, '2025-09-30T11:00:00Z', 4000),
  ]
  const text = lines.map((one) => JSON.stringify(one)).join('\n')
  const { code, stderr } = await tundish(['import', '--project', shop.projectId, '-'], server.env, text)
  assert.equal(code, 0, stderr)
  assert.deepEqual(await Promise.all(['2025-08', '2025-09', '2025-10'].map(grossOf)), [[1], [320], [4000]])
  assert.equal((await get('?month=2025-09')).time_zone, 'Pacific/Auckland')
  await assertExact(db, shop.projectId)
  const { currencies, differences } = await get('/tie-out?month=2025-09')
  assert.deepEqual(
    currencies.map(({ dashboard, finance }: Json) => [dashboard, finance]),
    [[320, 320]],
  )
  assert.deepEqual(differences, [])
})

test('a closed month keeps its time zone, whatever the projects have; a tie-out of other days is refused', async () => {
  const close = (month: string) =>
    server.admin('/organizations/down-under/finance/months', { method: 'POST', body: { month } })
  assert.equal((await close('2025-09')).status, 200)
  assert.equal((await reporting(shop.projectId, { time_zone: 'UTC' })).status, 200)
  assert.equal((await get('?month=2025-10')).time_zone, 'Pacific/Auckland')
  assert.deepEqual(await Promise.all(['2025-08', '2025-09', '2025-10'].map(grossOf)), [[1], [320], [4000]])
  const { status, body } = await server.admin('/organizations/down-under/finance/tie-out?month=2025-09')
  assert.equal(status, 409)
  assert.match(JSON.stringify(body), /by days of UTC, the finance report by those of Pacific\/Auckland/)
})

test('without closed months, projects of several time zones have a report in UTC', async () => {
  const other = await billing.organization('two-zones')
  assert.equal((await reporting(other.projectId, { time_zone: 'Europe/Madrid' })).status, 200)
  const zone = async () => (await server.admin('/organizations/two-zones/finance?month=2025-09')).body.time_zone
  assert.equal(await zone(), 'Europe/Madrid')
  const made = await tundishAgain(['project', 'create', 'second-zone', '--org', 'two-zones'], server.env)
  assert.equal(made.code, 0, made.stderr)
  assert.equal(await zone(), 'UTC')
})
