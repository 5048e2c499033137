// The pages of movements, churn, forecast and today by hour, compared with SQL on the demo.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { FROM, PERIOD, SUBSCRIPTIONS, startDemo, TO } from './demo-facts.ts'
import { money, rowsOf, tilesOf } from './page-numbers.ts'

const { page, query, facts, stop } = await startDemo()
after(stop)

const MOVEMENTS = ['new', 'reactivation', 'expansion', 'contraction', 'churn', 'paused']
const dollars = (cents: number) => Math.round(cents) / 100
const near = (a: number, b: number) => assert.ok(Math.abs(a - b) < 0.011, `${a} ${b}`)

test('the movements of each month add up to the change of the MRR, and each has some in the demo', async () => {
  const text = await page('/movements')
  const began = await facts(SUBSCRIPTIONS, `began >= '${FROM}Z' and began < '${TO}Z'`)
  const ended = await facts(SUBSCRIPTIONS, `began is not null and ended >= '${FROM}Z' and ended < '${TO}Z'`)
  const sum = (rows: typeof began) => rows.reduce((all, { worth }) => all + Number(worth), 0)
  const change = dollars(sum(began) - sum(ended))
  const rows = rowsOf(text, 'movements-sum')
  near(Number(rows.at(-1)![1]), change)
  assert.deepEqual(
    rows.slice(0, -1).map(([key]) => key),
    MOVEMENTS,
  )
  assert.ok(rows.every(([, value]) => Number(value) !== 0))
  near(
    rows.slice(0, -1).reduce((all, [, value]) => all + Number(value), 0),
    change,
  )
  // People who came back are those of whom an earlier subscription was over.
  const [back] = await query(`
    with own as (select f.*, u.profile_id from (${SUBSCRIPTIONS}) f join subscriptions u on u.project_id = 'demo' and u.id = f.id where began is not null)
    select sum(a.worth) as cents from own a where a.began >= '${FROM}Z' and a.began < '${TO}Z'
      and exists (select from own b where b.profile_id = a.profile_id and b.began < date_trunc('day', a.began))
      and not exists (select from own b where b.profile_id = a.profile_id and b.began < date_trunc('day', a.began)
        and (b.ended is null or b.ended >= date_trunc('day', a.began)))`)
  near(Number(rows[1]![1]), dollars(Number(back!.cents)))
  const byMonth = rowsOf(text, 'movements')
  near(
    byMonth.reduce((all, row) => all + Number(row.at(-1)), 0),
    change,
  )
})

test('the subscriptions behind a movement are worth what it says', async () => {
  const text = await page('/movements')
  const rows = rowsOf(text, 'movements-sum')
  for (const kind of ['new', 'reactivation', 'churn', 'paused']) {
    const [, moved] = new RegExp(`moved=([^"&]+\\+${kind})#subscriptions`).exec(text)!
    const csv = await page('/subscriptions', `${PERIOD}&csv=subscriptions&moved=${moved}`)
    const ids = csv
      .split('\r\n')
      .slice(1, -1)
      .map((row) => row.split(',')[0])
    const [sum] = await query(
      `select sum(worth) as cents from (${SUBSCRIPTIONS}) f where id = any ('{${ids.join(',')}}')`,
    )
    near(dollars(Number(sum!.cents)), Math.abs(Number(rows.find(([key]) => key === kind)![1])))
  }
})

test('a tile leads to as many subscriptions, sessions and payments as it says', async () => {
  const TILES: [path: string, label: string, list: string][] = [
    ['/subscriptions', 'Paying', 'subscriptions'],
    ['/churn', 'Trials', 'subscriptions'],
    ['/declines', 'Paid later', 'declined'],
    ['/acquisition', 'New people', 'sessions'],
    ['/acquisition', 'New customers', 'payments'],
  ]
  for (const [path, label, list] of TILES) {
    const text = await page(path)
    const [, link] = new RegExp(`href="([^"#]+)#${list}" aria-label="${label}: list"`).exec(text) ?? []
    assert.ok(link, `${label} of ${path} leads to no list`)
    const url = new URL(link.replaceAll('&amp;', '&'), 'http://x')
    const csv = await page(url.pathname, `${url.searchParams}&csv=${list}`)
    const count = csv.split('\r\n').length - 2
    const figure = Number(tilesOf(text)[label]!.replaceAll(',', ''))
    assert.ok(count > 0)
    // The list has first payments only, and some customers of the demo bought credits first.
    if (label !== 'New customers') assert.equal(count, figure, `${label} of ${path}`)
    else assert.ok(count <= figure && count > figure * 0.8, `${count} of ${figure}`)
  }
})

test('churn by product and by reason: those who ended, and those who were paying before', async () => {
  const own = `select f.*, u.product_id, coalesce(u.cancellation_reason, '') as reason from (${SUBSCRIPTIONS}) f
    join subscriptions u on u.project_id = 'demo' and u.id = f.id where f.began is not null`
  const paying = `count(*) filter (where began < '${FROM}Z' and (ended is null or ended >= '${FROM}Z'))`
  const ended = `count(*) filter (where ended >= '${FROM}Z' and ended < '${TO}Z')`
  const products = await query(
    `select product_id as key, ${paying} as paying, ${ended} as ended from (${own}) own group by 1`,
  )
  const shown = rowsOf(await page('/churn', `${PERIOD}&split=product`), 'churn').slice(0, -1)
  assert.deepEqual(
    shown.map(([key, gone, rate, , before]) => [key, Number(gone), Number(before), rate]).sort(),
    products
      .map(({ key, paying, ended }) => [
        key,
        Number(ended),
        Number(paying),
        Number(paying) > 0 ? String(Math.round((Number(ended) / Number(paying)) * 1e6) / 1e6) : '–',
      ])
      .sort(),
  )
  // A line leads to its subscriptions.
  const html = await page('/churn', `${PERIOD}&split=product`)
  const [, product] = /href="\/subscriptions\?[^"]*product=([^"&]+)#subscriptions"/.exec(html)!
  const list = rowsOf(await page('/subscriptions', `${PERIOD}&product=${product}`), 'subscriptions')
  assert.ok(list.length > 0)
  const others = await query(
    `select 1 from subscriptions where project_id = 'demo' and product_id <> '${product}' and id = any ('{${list.map(([one]) => one).join(',')}}')`,
  )
  assert.deepEqual(others, [])
  const reasons = await query(
    `select reason as key, ${ended} as ended from (${own}) own group by 1 having ${ended} > 0`,
  )
  const text = await page('/churn', `${PERIOD}&split=reason`)
  assert.deepEqual(
    rowsOf(text, 'churn')
      .slice(0, -1)
      .map(([key, gone]) => [key, Number(gone)])
      .sort(),
    reasons.map(({ key, ended }) => [key, Number(ended)]).sort(),
  )
  assert.equal(tilesOf(text).Ended, reasons.reduce((sum, { ended }) => sum + Number(ended), 0).toLocaleString('en-US'))
})

/** A page that goes by the clock: of an hour that did not end in between. */
async function pageNow(path: string, query?: string): Promise<{ text: string; today: string; hour: number }> {
  for (;;) {
    const [begun, text, ended] = [new Date(), await page(path, query), new Date()]
    const hour = begun.getUTCHours()
    if (hour === ended.getUTCHours()) return { text, today: begun.toISOString().slice(0, 10), hour }
  }
}

test('the forecast: what is due on each day, and that it is one', async () => {
  const { text, today } = await pageNow('/churn')
  assert.match(text, /A forecast, not a figure/)
  const due = await query(`
    select to_char(u.period_ends_at at time zone 'UTC', 'YYYY-MM-DD') as day, count(*) filter (where status = 'active') as renewals,
      sum(price_usd) filter (where status = 'active') as cents, count(*) filter (where status = 'trialing') as trials
    from subscriptions u join profiles p on p.project_id = u.project_id and p.id = u.profile_id
    where u.project_id = 'demo' and not p.preview and not u.sandbox and u.renews and status in ('active', 'trialing')
      and period_ends_at >= '${today}Z'::timestamptz + interval '1 day' and period_ends_at < '${today}Z'::timestamptz + interval '31 days'
    group by 1 order by 1`)
  const rows = rowsOf(text, 'forecast')
  assert.deepEqual(
    rows
      .slice(0, -1)
      .map(([day, , renewals, amount, trials]) => [
        day,
        Number(renewals),
        dollars(Number(amount) * 100),
        Number(trials),
      ]),
    due.map(({ day, renewals, cents, trials }) => [day, Number(renewals), dollars(Number(cents ?? 0)), Number(trials)]),
  )
  assert.ok(due.length > 10)
})

test('today by hour: each hour of the three days, and the hours that are over', async () => {
  for (const [metric, sql, where] of [
    ['revenue', 'sum(t.price_usd) / 100.0', 'not t.sandbox'],
    ['sales', 'count(*)', 'not t.sandbox'],
  ] as const) {
    const { text, today, hour } = await pageNow('/hours', `project=demo&split=${metric}`)
    const rows = rowsOf(text, 'hours')
    assert.equal(rows.length, 24)
    const sums = await query(`
      select to_char(t.created_at at time zone 'UTC', 'HH24:00') as hour, ${sql} as value
      from transactions t join profiles p on p.project_id = t.project_id and p.id = t.profile_id
      where t.project_id = 'demo' and not p.preview and ${where}
        and t.created_at >= '${today}Z'::timestamptz - interval '1 day' and t.created_at < '${today}Z' group by 1`)
    assert.ok(sums.length > 0)
    const yesterday = new Map(sums.map(({ hour, value }) => [hour, Number(value)]))
    for (const [hour, , value] of rows) near(Number(value), yesterday.get(hour!) ?? 0)
    const line = rowsOf(text, 'so-far').find(([label]) => label === (metric === 'revenue' ? 'Revenue' : 'Sales'))!
    near(
      Number(line[2]),
      rows.slice(0, hour).reduce((sum, row) => sum + Number(row[2]), 0),
    )
    if (metric === 'revenue') assert.equal(tilesOf(text).Revenue, money(Number(line[1])))
  }
})
