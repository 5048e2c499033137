// The numbers of every page with figures, read from its HTML as a browser without scripts has it, beside SQL on the demo.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { prepareDemo } from '../../src/demo/demo.ts'
import { followAll } from '../../src/figures/follow.ts'
import { startDashboard } from '../support/dashboard.ts'
import { money, rowsOf, tilesOf } from '../support/page-numbers.ts'

const DAY_MS = 86_400_000
const day = (daysAgo: number) => new Date(Date.now() - daysAgo * DAY_MS).toISOString().slice(0, 10)
// 200 days, so that months at both ends are not whole; the day after the last for SQL.
const [FROM, LAST, TO] = [day(200), day(1), day(0)]
const PERIOD = `project=demo&from=${FROM}&to=${LAST}&by=month`

// Independent of the statements that compute figures: a row for each movement of money, session and so on.
const SALES = `
  select to_char(t.created_at at time zone 'UTC', 'YYYY-MM') as month, t.created_at as at, t.price_usd as cents, t.currency,
    coalesce(u.product_id, '') as product, coalesce(p.country, '') as country, coalesce(t.funnel_id, '') as funnel,
    coalesce(u.payment_provider, '') as provider,
    case when u.id is null then 'one_off' when t.id = u.trial_transaction_id then 'trial'
      when t.price > 0 and rank() over (partition by u.id, t.price > 0 and t.id is distinct from u.trial_transaction_id
        order by t.created_at, t.id) = 1 then 'new' else 'renewal' end as kind
  from transactions t join profiles p on p.project_id = t.project_id and p.id = t.profile_id
  left join subscriptions u on u.project_id = t.project_id and u.id = t.subscription_id
  where t.project_id = 'demo' and not t.sandbox and not p.preview
  union all
  select to_char(r.trx_created_at at time zone 'UTC', 'YYYY-MM'), r.trx_created_at, r.amount_usd * 100, r.currency_code, '', '',
    '', r.psp, 'one_off'
  from report_transactions r join customers c using (organization_id, external_id)
  where c.project_id = 'demo' and c.profile_id is null and r.psp_transaction_type = 'sale' and r.status = 'succeeded'`
const BACK = `
  select to_char(r.trx_created_at at time zone 'UTC', 'YYYY-MM') as month, r.trx_created_at as at,
    r.amount_usd * 100 as cents, r.psp_transaction_type as type, coalesce(r.psp_reason_code, '') as reason
  from report_transactions r join customers c using (organization_id, external_id)
  where c.project_id = 'demo' and r.psp_transaction_type in ('refund', 'chargeback')`
const SESSIONS = `
  select s.id, s.funnel_id as funnel, to_char(s.created_at at time zone 'UTC', 'YYYY-MM') as month, s.created_at as at,
    s.country, exists (select from replies r where r.project_id = 'demo' and r.session_id = s.id) as replied,
    p.email is not null as email,
    exists (select from subscriptions u where u.project_id = 'demo' and u.session_id = s.id) as subscribed,
    s.id in (
      select t.session_id from transactions t where t.project_id = 'demo' and t.price > 0
      union select u.session_id from transactions t
        join subscriptions u on u.project_id = t.project_id and u.id = t.subscription_id
        where t.project_id = 'demo' and t.price > 0) as paid
  from sessions s join profiles p on p.project_id = s.project_id and p.id = s.profile_id
  where s.project_id = 'demo' and not p.preview`
const SUBSCRIPTIONS = `
  select u.id, to_char(u.created_at at time zone 'UTC', 'YYYY-MM') as month, u.created_at as at,
    coalesce(first, case when u.status = 'active' or (u.status not in ('created', 'trialing') and u.trial_offer is null
      and u.trial_transaction_id is null) then u.created_at end) as began,
    case when u.status = 'paused' then u.paused_at
      when u.status in ('cancelled', 'expired', 'unpaid') then coalesce(u.period_ends_at, u.cancelled_at) end as ended,
    u.price_usd * case u.billing_interval when 'day' then 30.4375 when 'week' then 30.4375 / 7 when 'year' then 1 / 12.0 else 1 end
      / u.billing_interval_count as worth
  from subscriptions u join profiles p on p.project_id = u.project_id and p.id = u.profile_id
  left join lateral (select min(t.created_at) as first from transactions t where t.project_id = 'demo'
    and t.subscription_id = u.id and t.price > 0 and t.id is distinct from u.trial_transaction_id) f on true
  where u.project_id = 'demo' and not u.sandbox and not p.preview`
const ATTEMPTS = `
  select to_char(r.trx_created_at at time zone 'UTC', 'YYYY-MM') as month, r.trx_created_at as at, r.status,
    r.psp_reason_code as reason, r.psp_reason_decline_type as type
  from report_transactions r join customers c using (organization_id, external_id)
  where c.project_id = 'demo' and r.psp_transaction_type = 'sale' and r.status in ('succeeded', 'failed')`

describe('the figures of the demo on pages', () => {
  let dashboard: Awaited<ReturnType<typeof startDashboard>>
  let cookie: string
  before(async () => {
    dashboard = await startDashboard()
    const { server, operator, signIn } = dashboard
    await prepareDemo(server.app, { url: server.url, adminUrl: server.adminUrl })
    await followAll(server.db)
    cookie = await signIn((await operator('read')).key)
  })
  after(() => dashboard?.stop())

  async function page(path: string): Promise<string> {
    const { status, text } = await dashboard.visit(`${path}?${PERIOD}`, { cookie })
    assert.equal(status, 200, text)
    return text
  }

  /** The rows of the period, or of what `where` says. */
  const facts = (sql: string, where = `at >= '${FROM}Z' and at < '${TO}Z'`) =>
    dashboard.server.db.query(`select * from (${sql}) facts where ${where}`)

  type Fact = Awaited<ReturnType<typeof facts>>[number]
  const cents = (rows: Fact[]) => Math.round(rows.reduce((sum, one) => sum + Number(one.cents), 0)) / 100
  const count = (rows: Fact[], field: string) => rows.filter((one) => one[field] === 't').length
  /** What `values` makes of the rows of each key, the largest first by the second cell. */
  function grouped(rows: Fact[], field: string, values: (rows: Fact[]) => number[]): (string | number)[][] {
    const groups = [...Map.groupBy(rows, (one) => one[field] ?? '')].map(([key, own]) => [key, ...values(own)])
    return groups.sort((a, b) => Number(b[1]) - Number(a[1]) || (a[0]! < b[0]! ? -1 : 1))
  }
  const sorted = (rows: (string | number)[][]) =>
    rows.sort((a, b) => Number(b[1]) - Number(a[1]) || (a[0]! < b[0]! ? -1 : 1))

  test('today: revenue, net, MRR, paying, new, sessions, sales, acceptance and refunds', async () => {
    const text = await page('/')
    const [sales, back, sessions, attempts] = await Promise.all(
      [SALES, BACK, SESSIONS, ATTEMPTS].map((one) => facts(one)),
    )
    const made = await facts(SUBSCRIPTIONS)
    const paying = await facts(SUBSCRIPTIONS, `began < '${TO}Z' and (ended is null or ended >= '${TO}Z')`)
    const refunds = back!.filter(({ type }) => type === 'refund')
    const share = (part: number, whole: number) => `${((part / whole) * 100).toFixed(1)}%`
    const accepted = attempts!.filter(({ status }) => status === 'succeeded').length
    const expected = {
      Revenue: money(cents(sales!)),
      'Net revenue': money(cents(sales!) - cents(back!)),
      'Paying subscriptions': paying.length.toLocaleString('en-US'),
      'New subscriptions': made.length.toLocaleString('en-US'),
      Sessions: sessions!.length.toLocaleString('en-US'),
      'Sessions that paid': share(count(sessions!, 'paid'), sessions!.length),
      Sales: sales!.length.toLocaleString('en-US'),
      'Accepted payments': share(accepted, attempts!.length),
      'Refunds to revenue': share(cents(refunds), cents(sales!)),
    }
    const { MRR, ...shown } = tilesOf(text)
    assert.deepEqual(shown, expected)
    const worth = paying.reduce((sum, one) => sum + Number(one.worth), 0) / 100
    assert.ok(Math.abs(Number(MRR!.replace(/[$,]/g, '')) - worth) < 0.02, `${MRR} is not ${worth}`)
    const byMonth = rowsOf(text, 'revenue-by-currency').map(([month, ...parts]) => [
      month,
      Math.round(parts.reduce<number>((sum, part) => sum + Number(part) * 100, 0)) / 100,
    ])
    for (const [month, value] of byMonth)
      assert.equal(value, cents(sales!.filter((one) => one.month === month)), `${month}`)
    assert.ok(byMonth.length >= 7)
  })

  test('revenue: by month, and by currency, product, country, funnel and kind', async () => {
    const text = await page('/revenue')
    const [sales, back] = [await facts(SALES), await facts(BACK)]
    for (const [month, ...shown] of rowsOf(text, 'revenue')) {
      const gross = cents(sales.filter((one) => one.month === month))
      const [refunds, chargebacks] = ['refund', 'chargeback'].map((type) =>
        cents(back.filter((one) => one.month === month && one.type === type)),
      )
      const net = Math.round((gross - refunds! - chargebacks!) * 100) / 100
      assert.deepEqual(shown.map(Number), [gross, refunds, chargebacks, net], `${month}`)
    }
    for (const split of ['product', 'country', 'funnel']) {
      const shown = rowsOf(text, split).map(([key, gross, , , , n]) => [key!, Number(gross), Number(n)])
      assert.deepEqual(
        sorted(shown.filter(([, , n]) => n !== 0)),
        grouped(sales, split, (own) => [cents(own), own.length]),
        split,
      )
    }
    const kinds = rowsOf(text, 'kind').filter(([, , , , , n]) => Number(n) > 0)
    assert.deepEqual(
      sorted(kinds.map(([key, gross, , , , n]) => [key!, Number(gross), Number(n)])),
      grouped(sales, 'kind', (own) => [cents(own), own.length]),
    )
    const currencies = rowsOf(text, 'currencies').map(([key, , , , , n]) => [key!, Number(n)])
    assert.deepEqual(
      sorted(currencies),
      grouped(sales, 'currency', (own) => [own.length]),
    )
  })

  test('funnels: how far sessions come in each; one funnel by screen and country', async () => {
    const sessions = await facts(SESSIONS)
    const steps = (own: Fact[]) => [
      own.length,
      ...['replied', 'email', 'subscribed', 'paid'].map((one) => count(own, one)),
    ]
    const shown = rowsOf(await page('/funnels'), 'funnels').map(([key, ...cells]) => [
      key!,
      ...cells.slice(0, 5).map(Number),
    ])
    assert.deepEqual(sorted(shown), grouped(sessions, 'funnel', steps))
    const own = sessions.filter(({ funnel }) => funnel === 'fun_sleep')
    const text = await page('/funnels/fun_sleep')
    const countries = rowsOf(text, 'country').map(([key, ...cells]) => [key!, ...cells.slice(0, 5).map(Number)])
    assert.deepEqual(sorted(countries), grouped(own, 'country', steps))
    const screens = await dashboard.server.db.query(
      `select screen_id as id, count(distinct session_id) as answered,
         count(distinct session_id) filter (where screen_index = last) as stopped
       from (select *, max(screen_index) over (partition by session_id) as last from replies
             where project_id = 'demo' and session_id = any($1)) replies
       group by screen_id, screen_index order by screen_index`,
      [own.map(({ id }) => id!)],
    )
    assert.deepEqual(
      rowsOf(text, 'screens').map(([id, , answered, , stopped]) => [id, answered, stopped]),
      screens.map(({ id, answered, stopped }) => [id, answered, stopped]),
    )
    assert.ok(screens.length > 3 && countries.length > 3)
  })

  test('subscriptions: made, began and ended by month, their states over time and now', async () => {
    const text = await page('/subscriptions')
    const all = await dashboard.server.db.query(
      `select *, to_char(began at time zone 'UTC', 'YYYY-MM') as began_month,
         to_char(ended at time zone 'UTC', 'YYYY-MM') as ended_month from (${SUBSCRIPTIONS}) all_subscriptions`,
    )
    const within = (one: Fact, field: string) => one[field]! >= FROM && one[field]! < TO
    for (const [month, made, began, ended] of rowsOf(text, 'flow')) {
      const expected = [
        all.filter((one) => within(one, 'at') && one.month === month),
        all.filter((one) => one.began && within(one, 'began') && one.began_month === month),
        all.filter((one) => one.began && one.ended && within(one, 'ended') && one.ended_month === month),
      ]
      assert.deepEqual(
        [made, began, ended].map(Number),
        expected.map((one) => one.length),
        `${month}`,
      )
    }
    for (const [month, ...shown] of rowsOf(text, 'by-state')) {
      const next = new Date(Date.UTC(Number(month!.slice(0, 4)), Number(month!.slice(5)))).toISOString().slice(0, 10)
      const end = [next, TO].sort()[0]!
      const has = (one: Fact, field: string) => one[field] !== null && one[field]! < end
      const expected = [
        all.filter((one) => has(one, 'began') && !has(one, 'ended')),
        all.filter((one) => has(one, 'at') && !has(one, 'began')),
        all.filter((one) => has(one, 'began') && has(one, 'ended')),
      ]
      assert.deepEqual(
        shown.map(Number),
        expected.map((one) => one.length),
        `${month}`,
      )
    }
    const states = await dashboard.server.db.query(
      `select status, count(*) as n from subscriptions where project_id = 'demo' group by 1`,
    )
    for (const { status, n } of states)
      assert.match(text, new RegExp(`>${status}</span></a> <strong>${Number(n).toLocaleString('en-US')}<`))
  })

  test('charges and refunds: attempts by month, why they were declined, why money went back', async () => {
    const attempts = await facts(ATTEMPTS)
    const text = await page('/charges')
    for (const [month, n] of rowsOf(text, 'acceptance'))
      assert.equal(Number(n), attempts.filter((one) => one.month === month).length, `${month}`)
    const declined = attempts.filter(({ status }) => status === 'failed')
    assert.deepEqual(
      rowsOf(text, 'reasons')
        .map((cells) => Number(cells[2]))
        .sort((a, b) => b - a),
      grouped(declined, 'reason', (own) => [own.length]).map(([, n]) => n),
    )
    const hard = declined.filter(({ type }) => type === 'hard').length
    assert.match(text, new RegExp(`${declined.length - hard} soft \\(.*${hard} hard \\(`))
    const back = await facts(BACK)
    const reasons = rowsOf(await page('/refunds'), 'reasons').map(([key, refunds, , disputes]) => [
      key!,
      Number(refunds),
      Number(disputes),
    ])
    const of = (own: Fact[], type: string) => own.filter((one) => one.type === type).length
    assert.deepEqual(
      sorted(reasons),
      grouped(back, 'reason', (own) => [of(own, 'refund'), of(own, 'chargeback')]),
    )
    assert.ok(reasons.length > 3)
  })
})
