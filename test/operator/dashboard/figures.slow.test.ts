// The numbers of every page with figures, read from its HTML as a browser without scripts has it, compared with SQL on the demo.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import {
  ATTEMPTS,
  BACK,
  cents,
  count,
  type Fact,
  FROM,
  grouped,
  PERIOD,
  SALES,
  SESSIONS,
  SUBSCRIPTIONS,
  sorted,
  startDemo,
  steps,
  TO,
} from './demo-facts.ts'
import { money, rowsOf, tilesOf } from './page-numbers.ts'

const { page, facts, query, stop } = await startDemo()
after(stop)

describe('the figures of the demo on pages', () => {
  test('answers of a screen: by value, with those who paid; each leads to its sessions', async () => {
    const given = await facts(`
      select s.*, r.element_id, r.element_type, a.value from (${SESSIONS}) s
      join replies r on r.project_id = 'demo' and r.session_id = s.id and r.screen_id = 'scr_2'
      left join lateral json_array_elements_text(r.value) a (value) on true where s.funnel = 'fun_sleep'`)
    const text = await page('/funnels/fun_sleep/screens/scr_2')
    const rows = rowsOf(text, 'answers-el_goals').slice(0, -1)
    const byName = (all: (string | number)[][]) => all.sort((a, b) => (a[0]! < b[0]! ? -1 : 1))
    assert.deepEqual(
      byName(rows.map(([name, , , sessions, , paid]) => [name!, Number(sessions), Number(paid)])),
      byName(
        grouped(given, 'value', (own) => [own.length, count(own, 'paid')]).map(([name, ...values]) => [
          name || 'No answer',
          ...values,
        ]),
      ),
    )
    assert.equal(rows.length, 6)
    // The name has the written text of a person, which is no value.
    assert.deepEqual(
      rowsOf(await page('/funnels/fun_sleep/screens/scr_4'), 'answers-el_name').map(([name]) => name),
      ['Written text'],
    )
    for (const response of ['scr_2 el_goals value fall_asleep', 'scr_2 el_goals empty', 'scr_4 el_name written']) {
      const list = await page(
        '/sessions',
        `${PERIOD}&funnel=fun_sleep&answer=${encodeURIComponent(response)}&csv=sessions`,
      )
      const [, question, kind, value] = response.split(' ')
      const [row] = await query(
        `
        select count(*) as n from sessions s join replies r on r.project_id = s.project_id and r.session_id = s.id and r.element_id = $1
        join profiles p on p.project_id = s.project_id and p.id = s.profile_id and not p.preview
        where s.project_id = 'demo' and s.funnel_id = 'fun_sleep' and s.created_at >= '${FROM}Z' and s.created_at < '${TO}Z'
          and case $2 when 'value' then r.value::jsonb ? $3 when 'empty' then r.value::text = '[]' else r.value::text <> 'null' end`,
        [question!, kind!, value ?? ''],
      )
      assert.equal(list.trim().split('\r\n').length - 1, Number(row!.n), response)
    }
  })

  test('today: revenue, sales, sessions and new subscriptions of the day; net, MRR, paying and rates of the period', async () => {
    const text = await page('/')
    const [sales, back, sessions, attempts] = await Promise.all(
      [SALES, BACK, SESSIONS, ATTEMPTS].map((one) => facts(one)),
    )
    const ofToday = `at >= date_trunc('day', db_clock(), 'UTC')`
    const day = await Promise.all([SALES, SESSIONS, SUBSCRIPTIONS].map((one) => facts(one, ofToday)))
    const paying = await facts(SUBSCRIPTIONS, `began < '${TO}Z' and (ended is null or ended >= '${TO}Z')`)
    const refunds = back!.filter(({ type }) => type === 'refund')
    const share = (part: number, whole: number) => `${((part / whole) * 100).toFixed(1)}%`
    const accepted = attempts!.filter(({ status }) => status === 'succeeded').length
    const expected = {
      Revenue: money(cents(day[0]!)),
      'Net revenue': money(cents(sales!) - cents(back!)),
      'Paying subscriptions': paying.length.toLocaleString('en-US'),
      'New subscriptions': day[2]!.length.toLocaleString('en-US'),
      Sessions: day[1]!.length.toLocaleString('en-US'),
      Conversion: share(count(sessions!, 'paid'), sessions!.length),
      Sales: day[0]!.length.toLocaleString('en-US'),
      'Acceptance rate': share(accepted, attempts!.length),
      'Refund rate': share(cents(refunds), cents(sales!)),
    }
    const { MRR, ...shown } = tilesOf(text)
    assert.deepEqual(shown, expected)
    const worth = paying.reduce((sum, one) => sum + Number(one.worth), 0) / 100
    assert.ok(Math.abs(Number(MRR!.replace(/[$,]/g, '')) - worth) < 0.02, `${MRR} is not ${worth}`)
    const byMonth = rowsOf(text, 'revenue')
    for (const [month, total] of byMonth)
      assert.equal(Number(total), cents(sales!.filter((one) => one.month === month)), `${month}`)
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
      assert.deepEqual(shown.slice(0, 4).map(Number), [net, refunds, chargebacks, gross], `${month}`)
    }
    for (const split of ['product', 'country', 'funnel', 'provider']) {
      const shown = rowsOf(await page('/revenue', `${PERIOD}&split=${split}`), split).map(([key, gross, , , , n]) => [
        key!,
        Number(gross),
        Number(n),
      ])
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
    const currencies = rowsOf(await page('/revenue', `${PERIOD}&split=currency`), 'currencies').map(
      ([key, , , , , n]) => [key!, Number(n)],
    )
    assert.deepEqual(
      sorted(currencies),
      grouped(sales, 'currency', (own) => [own.length]),
    )
  })

  test('revenue per person and per payer by month, for at least a year', async () => {
    const rows = rowsOf(await page('/revenue'), 'averages')
    const [sales, sessions] = [await facts(SALES, 'true'), await facts(SESSIONS, 'true')]
    const end = TO.slice(0, 7)
    assert.equal(rows.length, 12)
    for (const [month, perPerson, perPayer] of rows) {
      const own = sales.filter((one) => one.month === month && (month !== end || one.at! < `${TO} `))
      const there = sessions.filter((one) => one.month === month)
      const people = new Set(there.map(({ profile_id }) => profile_id)).size
      const payers = new Set(own.flatMap(({ payer }) => payer ?? [])).size
      // Four digits are shown: a fifth of 5 may be rounded either way.
      assert.ok(Math.abs(Number(perPayer) - cents(own) / payers) < 5.1e-5, `${month}: ${perPayer}`)
      if (month !== end) assert.ok(Math.abs(Number(perPerson) - cents(own) / people) < 1e-5, `${month}`)
    }
  })

  test('funnels: the steps that sessions reach in each; one funnel by screen and country', async () => {
    const sessions = await facts(SESSIONS)
    const stepsOf = ([key, , all, replied, , emails, , subscribed, , paid]: string[]) => [
      key!,
      ...[all, replied, emails, subscribed, paid].map(Number),
    ]
    const shown = rowsOf(await page('/funnels'), 'funnels').map(stepsOf)
    assert.deepEqual(sorted(shown), grouped(sessions, 'funnel', steps))
    const own = sessions.filter(({ funnel }) => funnel === 'fun_sleep')
    const text = await page('/funnels/fun_sleep')
    const tables = { version: 'version', experiment: 'experiment', language: 'locale', country: 'country' }
    for (const [table, field] of Object.entries(tables)) {
      const parts = rowsOf(text, table).map(stepsOf)
      assert.deepEqual(sorted(parts), grouped(own, field, steps), table)
      assert.ok(parts.length > 0, table)
    }
    const screens = await query(
      `select screen_id as id, count(distinct session_id) as answered,
         count(distinct session_id) filter (where screen_index = last) as stopped
       from (select *, max(screen_index) over (partition by session_id) as last from replies
             where project_id = 'demo' and session_id = any($1)) replies
       group by screen_id, screen_index order by screen_index`,
      [own.map(({ id }) => id!)],
    )
    assert.deepEqual(
      rowsOf(text, 'screens').map(([id, , stopped, , answered]) => [id, answered, stopped]),
      screens.map(({ id, answered, stopped }, n) => [id, answered, n < screens.length - 1 ? stopped : 'completed']),
    )
    assert.ok(screens.length > 3)
  })

  test('subscriptions: created, started paying and ended by month, by status over time and now', async () => {
    const text = await page('/subscriptions')
    const all = await query(
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
    const states = await query(`select status, count(*) as n from subscriptions where project_id = 'demo' group by 1`)
    for (const { status, n } of states)
      assert.match(text, new RegExp(`>${status}</span></a> <strong>${Number(n).toLocaleString('en-US')}<`))
  })

  test('refund and dispute rates: what went back of the payments of the period, by product and cohort', async () => {
    const payments = `
      select r.order_id, coalesce(r.psp_date, r.trx_created_at) as at, r.amount_usd * 100 as cents, coalesce(u.product_id, '') as product,
        (select to_char(min(coalesce(f.psp_date, f.trx_created_at)) at time zone 'UTC', 'YYYY-MM') from report_transactions f
         where f.external_id = r.external_id and f.psp_transaction_type = 'sale' and f.status = 'succeeded') as cohort,
        coalesce((select sum(b.amount_usd) * 100 from report_transactions b where b.order_id = r.order_id and b.psp_transaction_type = 'refund'), 0) as refunded,
        coalesce((select sum(b.amount_usd) * 100 from report_transactions b where b.order_id = r.order_id and b.psp_transaction_type = 'chargeback'), 0) as disputed
      from report_transactions r join customers c using (organization_id, external_id)
      left join transactions t on t.project_id = 'demo' and t.profile_id = c.profile_id and t.created_at = coalesce(r.psp_date, r.trx_created_at)
      left join subscriptions u on u.project_id = 'demo' and u.id = t.subscription_id
      where c.project_id = 'demo' and r.psp_transaction_type = 'sale' and r.status = 'succeeded'`
    const own = await facts(payments)
    const sum = (rows: Fact[], name: string) => Math.round(rows.reduce((all, one) => all + Number(one[name]), 0)) / 100
    const valuesOf = (rows: Fact[]) => [
      rows.length,
      cents(rows),
      rows.filter(({ refunded }) => Number(refunded) > 0).length / rows.length,
      sum(rows, 'refunded'),
      rows.filter(({ disputed }) => Number(disputed) > 0).length / rows.length,
      sum(rows, 'disputed'),
    ]
    assert.ok(sum(own, 'refunded') > 0 && sum(own, 'disputed') > 0)
    for (const by of ['product', 'cohort'] as const) {
      const rows = rowsOf(await page('/refunds', `${PERIOD}&split=${by}`), 'rates')
      const wanted = [...Map.groupBy(own, (one) => one[by] ?? '').values(), own].map(valuesOf)
      const shown = rows.map(([, byCount, , disputes, , count, paid, refunded, disputed]) =>
        [count, paid, byCount, refunded, disputes, disputed].map(Number),
      )
      const order = (all: number[][]) => all.map((one) => one.map((value) => (value || 0).toFixed(2)).join(' ')).sort()
      assert.deepEqual(order(shown), order(wanted), by)
    }
  })

  test('charges and refunds: attempts by month, decline reasons, reasons of refunds and disputes', async () => {
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
    assert.match(text, new RegExp(`${declined.length - hard} soft declines \\(.*${hard} hard declines \\(`))
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
