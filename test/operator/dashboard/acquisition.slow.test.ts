// The pages of acquisition, worth and experiments, compared with SQL on the demo.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { FROM, startDemo, TO } from './demo-facts.ts'
import { money, rowsOf, tilesOf } from './page-numbers.ts'

const { page, query, stop } = await startDemo()
after(stop)

const DAYS = `>= '${FROM}Z' and created_at < '${TO}Z'`
// The first session of each person who is not a preview.
const FIRST = `
  select distinct on (s.profile_id) s.* from sessions s join profiles p on p.project_id = s.project_id and p.id = s.profile_id
  where s.project_id = 'demo' and not p.preview order by s.profile_id, s.created_at, s.id`

test('acquisition by source: spend, people, customers, cost, and the return of thirty days', async () => {
  const text = await page('/acquisition')
  const rows = await query(`
    with first as (${FIRST}), came as (select visit_source as source, count(*) as people from first where created_at ${DAYS} group by 1),
    paid as (
      select f.visit_source as source, count(*) as customers from first f cross join lateral (
        select t.created_at, t.sandbox from transactions t where t.project_id = 'demo' and t.profile_id = f.profile_id and t.price > 0
        order by t.created_at, t.id limit 1) t
      where t.created_at >= '${FROM}Z' and t.created_at < '${TO}Z' and not t.sandbox group by 1),
    spent as (select source, sum(amount_usd) as spent from spend where project_id = 'demo' and day >= '${FROM}' and day < '${TO}' group by 1)
    select c.source, coalesce(spent, 0) as spent, people, coalesce(customers, 0) as customers
    from came c left join paid using (source) left join spent using (source)
    order by 2 desc, people desc`)
  const shown = rowsOf(text, 'acquisition').slice(0, -1)
  // Customers of the demo without a profile have no session.
  const [, , , , , without] = shown.find(([source]) => source === '')!
  assert.ok(rows.length === 3)
  assert.deepEqual(
    shown
      .filter(([source]) => source !== '')
      .map(([source, , , spent, people, customers]) => [source, Number(spent) || 0, Number(people), Number(customers)]),
    rows.map(({ source, spent, people, customers }) => [source, Number(spent), Number(people), Number(customers)]),
  )
  const all = (name: string) =>
    rows.reduce((sum, row) => sum + Number(row[name]), name === 'customers' ? Number(without) : 0)
  const tiles = tilesOf(text)
  assert.equal(tiles.Spend, money(all('spent')))
  assert.equal(tiles['New customers'], all('customers').toLocaleString('en-US'))
  assert.equal(tiles['Cost of a customer'], money(Math.round((all('spent') / all('customers')) * 100) / 100))
})

test('the worth of a customer by cohort: people, and net revenue in the first month', async () => {
  const [cohort, people, month] = rowsOf(await page('/worth', 'project=demo&period=12m'), 'worth')[0]!
  const [row] = await query(`
    with first as (
      select distinct on (t.profile_id) t.profile_id, t.created_at, t.sandbox from transactions t
      where t.project_id = 'demo' and t.price > 0 order by t.profile_id, t.created_at, t.id),
    own as (
      select f.profile_id, (f.created_at at time zone 'UTC')::date as began from first f
      join profiles p on p.project_id = 'demo' and p.id = f.profile_id
      where to_char(f.created_at at time zone 'UTC', 'YYYY-MM') = '${cohort!.slice(0, 7)}' and not p.preview and not f.sandbox),
    gained as (
      select sum(coalesce(t.price_usd, case when t.currency = 'USD' then t.price end)) / 100 as net from own
      join transactions t on t.project_id = 'demo' and t.profile_id = own.profile_id and not t.sandbox
      where (t.created_at at time zone 'UTC')::date < (began + interval '1 month')::date),
    lost as (
      select sum(case when r.psp_transaction_type = 'chargeback_reversal' then -r.amount_usd else r.amount_usd end) as net from own
      join customers c on c.project_id = 'demo' and c.profile_id = own.profile_id
      join report_transactions r on r.organization_id = c.organization_id and r.external_id = c.external_id
      where r.psp_transaction_type <> 'sale' and r.status <> 'failed'
        and (coalesce(r.psp_date, r.trx_created_at) at time zone 'UTC')::date < (began + interval '1 month')::date)
    select (select count(*) from own) as people, (select net from gained) - coalesce((select net from lost), 0) as net`)
  assert.equal(people, row!.people)
  assert.ok(Math.abs(Number(month) - Number(row!.net) / Number(people)) < 0.005, `${month} ${row!.net}`)
})

test('the tiles of the worth are the averages of the people whose months are over', async () => {
  const text = await page('/worth', 'project=demo&period=12m')
  // A month is over for everybody in a cohort if its number is not faded.
  const rows = rowsOf(text, 'worth')
  const over = [...text.matchAll(/<tr><td[^>]*data-value="(\d{4}-\d\d-\d\d)".*?<\/tr>/g)]
    .filter(([row]) => !/<td[^>]*>[^<]*<span class="quiet">/.test(row.split('</td>')[4]!))
    .map(([, cohort]) => rows.find(([key]) => key === cohort)!)
    .filter((row) => row[4] !== '')
  assert.ok(over.length > 5 && over.length < rows.length)
  const people = over.reduce((sum, row) => sum + Number(row[1]), 0)
  const worth = over.reduce((sum, row) => sum + Number(row[1]) * Number(row[4]), 0)
  assert.equal(tilesOf(text)['After 3 months'], money(Math.round((worth / people) * 100) / 100))
})

test('of the two experiments of the demo one is decided', async () => {
  const text = await page('/experiments', 'project=demo&period=24m')
  assert.match(text, /“b” is better than “a”/)
  assert.match(text, /No verdict yet/)
  const tables = ['experiment-1', 'experiment-2'].map((id) => rowsOf(text, id))
  const [row] = await query(`
    select count(distinct s.profile_id) as people from sessions s join profiles p on p.project_id = s.project_id and p.id = s.profile_id
    where s.project_id = 'demo' and s.experiment_id is not null and not p.preview and s.created_at >= now() - interval '20 months'`)
  assert.ok(tables.every((rows) => rows.length === 2))
  assert.ok(Number(row!.people) > 100)
})
