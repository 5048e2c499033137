// Periods that are not over, or only partly shown: marked as incomplete, and never compared with whole ones.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { addDays, DAY_MS } from '../../../src/lib/days.ts'
import { startDashboard } from '../../support/dashboard.ts'
import { setNoon } from '../../support/time.ts'
import { money, tilesOf } from './page-numbers.ts'

const dashboard = await startDashboard()
after(() => dashboard.stop())
const today = await setNoon(dashboard.server.env.DATABASE_URL!)
const cookie = await dashboard.signInAs('read')
const { query } = dashboard.server.db
// Ten dollars a day for two years, and nothing today.
await query(
  `insert into figures_sales (project_id, split, day, test, key, subkey, currency, sales, gross, refunds, refunded, chargebacks,
     charged_back, payers, gross_usd, refunded_usd, charged_back_usd, without_usd)
   select $1, '', (db_clock() at time zone 'UTC')::date - n, false, '', '', 'USD', 1, 1000, 0, 0, 0, 0, 1, 1000, 0, 0, 0
   from generate_series(1, 800) n`,
  [dashboard.project.id],
)

const shown = (day: string) =>
  new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' })
    .format(new Date(day))
    .replace('Sept', 'Sep')
const see = async (path: string) => (await dashboard.visit(path, { cookie })).text
const changeOf = (text: string, label: string) =>
  new RegExp(
    `<dt>${label}</dt><dd><strong>[^<]*</strong>\\s*<span class="quiet"><span class="change[^>]*>([^<]*)<`,
    's',
  ).exec(text)![1]

/** The comparison in the cell next to each period of a table. */
const partsOf = (text: string, table: string) =>
  [
    ...new RegExp(`<table id="${table}">.*?</table>`, 's')
      .exec(text)![0]
      .matchAll(/<tr><td[^>]*>(?:<a [^>]*>)?[^<]*(?:<\/a>)? ?(?:<span class="part">([^<]*)<)?/g),
  ].map(([, part]) => part)

test('constant revenue is unchanged in every period, although today has just begun', async () => {
  for (const period of ['7d', '30d', '90d', '12m'])
    assert.equal(changeOf(await see(`/revenue?period=${period}`), 'Revenue'), 'unchanged', period)
  assert.equal(
    changeOf(await see(`/revenue?from=${addDays(today, -9)}&to=${addDays(today, -1)}`), 'Revenue'),
    'unchanged',
  )
  assert.equal(changeOf(await see('/revenue?period=30d&compare=year'), 'Revenue'), 'unchanged')
  const text = await see(`/revenue?from=${today}&to=${today}`)
  assert.doesNotMatch(text, /class="change/)
  assert.match(text, /nothing to compare before today is over/)
  assert.match(await see('/revenue?period=7d'), /changes compare the 6 days until yesterday with the 6 days before/)
})

test('a page without changes does not say what changes compare, and keeps the choice for the others', async () => {
  const text = await see('/sessions?period=30d&compare=year')
  assert.doesNotMatch(text, /changes compare|name="compare"><option/)
  assert.match(text, /<input type="hidden" name="compare" value="year">/)
})

test('last month is compared with the month before, and this month with the same days of last month', async () => {
  const firstOf = (day: string) => `${day.slice(0, 7)}-01`
  const lastMonth = firstOf(addDays(firstOf(today), -1))
  const before = firstOf(addDays(lastMonth, -1))
  const daysOf = (first: string, end: string) => (Date.parse(end) - Date.parse(first)) / DAY_MS
  const [now, then] = [daysOf(lastMonth, firstOf(today)), daysOf(before, lastMonth)]
  const text = await see('/revenue?period=last-month')
  assert.match(
    text,
    new RegExp(`name="from" value="${shown(lastMonth)}".*compare the ${now} days with the month before`, 's'),
  )
  assert.equal(tilesOf(text)['Revenue'], money(now * 10))
  const percents = `${((Math.abs(now - then) / then) * 100).toFixed(1)}%`
  assert.equal(changeOf(text, 'Revenue'), now === then ? 'unchanged' : `${now > then ? '+' : '−'}${percents}`)
  const current = await see('/revenue?period=month')
  assert.match(
    current,
    today.endsWith('-01') ? /nothing to compare/ : /with the same a month earlier|with the month before/,
  )
  const other = await see('/revenue?period=last-month&compare=previous')
  assert.match(other, new RegExp(`compare the ${now} days with the ${now} days before`))
  assert.equal(changeOf(other, 'Revenue'), 'unchanged')
})

test('periods that are not over, or only partly shown, are marked in the table, the CSV and the chart', async () => {
  const months = await see('/revenue?period=12m')
  assert.deepEqual(partsOf(months, 'revenue'), [...Array(11).fill(undefined), 'so far'])
  assert.match(months, /Faded: the month that is not over\./)
  const days = await see('/revenue?period=30d')
  assert.deepEqual(partsOf(days, 'revenue'), [...Array(29).fill(undefined), 'so far'])
  assert.match(days, /today, which is not over/)
  // From a Tuesday to a Sunday: the first of three weeks is cut.
  const monday = addDays(today, -((new Date(today).getUTCDay() + 6) % 7))
  const weeks = await see(`/revenue?from=${addDays(monday, -20)}&to=${addDays(monday, -1)}&by=week`)
  assert.deepEqual(partsOf(weeks, 'revenue'), ['partial', undefined, undefined])
  const csv = await see('/revenue?period=12m&csv=revenue')
  const lines = csv.trim().split('\r\n')
  assert.equal(lines[0], 'Month,Net,Refunds,Chargebacks,Gross,Gross in the period before,Complete')
  assert.match(lines[11]!, /^\d{4}-\d{2},\d+\.00,0\.00,0\.00,\d+\.00,\d+\.00,yes$/)
  assert.match(
    lines[12]!,
    new RegExp(`^${today.slice(0, 7)},\\d+\\.00,0\\.00,0\\.00,\\d+\\.00,\\d+\\.00,"no, so far"$`),
  )
})

test('values at the end of a period are not marked as incomplete, because they are not sums', async () => {
  const { query } = dashboard.server.db
  await query(
    `insert into figures_subscriptions (project_id, split, day, test, key, subkey, currency, started, trials, converted, began_paying,
       ended, mrr, mrr_usd)
     select $1, '', (db_clock() at time zone 'UTC')::date - 100, false, '', '', 'USD', 5, 0, 0, 5, 0, 5000, 5000`,
    [dashboard.project.id],
  )
  await query(
    `insert into counts (project_id, list, field, value, n) values ($1, 'subscriptions', 'status', 'active', 5)`,
    [dashboard.project.id],
  )
  const text = await see('/subscriptions?period=12m')
  assert.ok(partsOf(text, 'paying').every((part) => part === undefined))
  assert.equal(partsOf(text, 'flow').at(-1), 'so far')
  const csv = await see('/subscriptions?period=90d&by=day&csv=paying')
  assert.match(csv, /^Day,Paying,Paying in the period before,Complete\r\n/)
  // It has 5 since 100 days ago, which is day 80 of the 90 days before.
  assert.deepEqual(
    csv
      .trim()
      .split('\r\n')
      .slice(1)
      .map((line) => line.split(',').slice(1, 3).join(' ')),
    Array.from({ length: 90 }, (_, n) => `5 ${n < 79 ? 0 : 5}`),
  )
})

test('days are typed as they are shown, or as ISO dates; anything else is refused in a sentence', async () => {
  const iso = await see('/revenue?from=2026-03-01&to=2026-03-31')
  const fields = [...iso.matchAll(/<input class="day" name="(\w+)" value="([^"]*)" placeholder="26 Oct 2026"/g)]
  assert.deepEqual(
    fields.map(([, name, value]) => [name, value]),
    [
      ['from', '1 Mar 2026'],
      ['to', '31 Mar 2026'],
    ],
  )
  assert.equal(tilesOf(iso).Revenue, '$310.00')
  for (const days of [
    'from=1+Mar+2026&to=31+Mar+2026',
    'from=+1+march+2026&to=31.+MARCH,+2026',
    'from=01+Mar+2026&to=2026-03-31',
  ])
    assert.equal(tilesOf(await see(`/revenue?${days}`)).Revenue, '$310.00', days)
  for (const day of ['03/01/2026', '1 Mar 26', '31 Feb 2026', '1 M 2026', 'yesterday']) {
    const { status, text } = await dashboard.visit(`/revenue?${new URLSearchParams({ from: day })}`, { cookie })
    assert.equal(status, 400, day)
    assert.match(text, /from must be a day such as 2026-01-31, got/, day)
  }
  for (const path of ['/audit', '/subscriptions', '/credits', '/payouts', '/merchant-accounts'])
    assert.doesNotMatch(await see(path), /type="date"/, path)
})
