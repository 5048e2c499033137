// CSV files of the demo: names next to ids, decimals of the currency, and names of files that tell them apart.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { dashboardOf } from '../../support/dashboard.ts'
import { startDemoServer } from './demo-database.ts'
import { PERIOD } from './demo-facts.ts'

const server = await startDemoServer()
after(server.stop)
const dashboard = dashboardOf(server)
const cookie = await dashboard.signInAs('read')

async function download(path: string, table: string, query = '') {
  const url = `${path}?${PERIOD}&csv=${table}${query}`
  const { status, headers, text } = await dashboard.visit(url, { cookie })
  assert.equal(status, 200, url)
  const [, name] = /filename="(.*)"/.exec(headers.get('content-disposition')!)!
  const [head, ...rows] = text.replace('\ufeff', '').trimEnd().split('\r\n')
  return { name: name!, head: head!, rows }
}

test('a person, a product, a country and a reason have their id in the next column', async () => {
  const people = await download('/people', 'people')
  assert.match(people.head, /^Person,Person ID,/)
  assert.match(people.rows[1]!, /^[^,]+@[^,]+,pro_[^,]+,/)
  const churn = await download('/churn', 'churn')
  assert.match(churn.head, /^Product,Product ID,/)
  assert.ok(churn.rows.some((row) => row.startsWith('Weekly plan,prod_weekly,')))
  assert.match((await download('/churn', 'churn', '&split=country')).rows.join('\n'), /^Spain,ES,/m)
  assert.match((await download('/churn', 'churn', '&split=reason')).rows.join('\n'), /^Too expensive,too_expensive,/m)
  assert.match((await download('/declines', 'by-reason')).rows.join('\n'), /^Insufficient funds,insufficient_funds,/m)
})

test('the file of one funnel has its id in the name, and one with money the currency', async () => {
  assert.match((await download('/funnels/fun_sleep', 'country')).name, /_funnels_fun-sleep_country_/)
  assert.match((await download('/worth', 'worth')).name, /_USD\.csv$/)
  const { name, rows } = await download('/experiments', 'experiment-1')
  assert.match(name, /_USD\.csv$/)
  assert.match(rows[1]!, /,-?0\.\d{4} -?0\.\d{4},/)
})

test('computed amounts have the decimals of their currency, a day of an alert is one of ISO 8601, and each line has its name', async () => {
  const cellsOf = (rows: string[]) => rows.map((row) => row.split(','))
  for (const [, , ...months] of cellsOf((await download('/worth', 'worth', '&period=12m')).rows))
    for (const one of months) assert.match(one, /^(-?\d+\.\d\d)?$/)
  for (const [, , ...amounts] of cellsOf((await download('/revenue', 'change')).rows))
    for (const one of amounts.slice(0, 3)) assert.match(one, /^-?\d+\.\d\d$/)
  assert.ok(cellsOf((await download('/declines', 'by-attempt')).rows).some(([attempt]) => attempt === 'Not paid'))
  await server.db.query(`update alert_rules set checked_day = '2026-10-31'`)
  assert.match((await download('/alerts', 'rules')).rows[0]!, /,2026-10-31,/)
})

test('the sums of an import from Stripe have the decimals of their currency', async () => {
  const both = { here: { count: 2, minor: '1760' }, stripe: { count: 2, minor: '1760' } }
  const tally = { own: 0, read: 2, erased: 0, figures: { 'payments|2026-11|USD': both }, rejects: [], rejected: 0 }
  await server.db.query(
    `insert into stripe_imports (organization_id, project_id, psp_merchant_id, options, background, status, step, tally, events_since,
       started_at, updated_at, finished_at)
     values ('demo', 'demo', 'stripe-demo', '{}', false, 'following', 'events', $1, now(), now(), now(), now())`,
    [JSON.stringify(tally)],
  )
  const { rows } = await download('/merchant-accounts', 'sums-stripe-demo')
  assert.deepEqual(rows, ['Payments,USD,2,17.60,2,17.60'])
})
