// The tables that test/operator/dashboard/figures.slow.test.ts does not read: charts over time, cohorts, lists and objects, compared with SQL.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { addDays } from '../../../src/lib/days.ts'
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
  startDemo,
  TO,
} from './demo-facts.ts'
import { rowsOf, tilesOf } from './page-numbers.ts'

const ALL = 'true'
const OF_DEMO = 'project=demo&period=30d'
const near = (shown: string | undefined, value: number, what: string) =>
  assert.ok(Math.abs(Number(shown) - value) < 1e-4, `${what}: ${shown} is not ${value}`)

const demo = await startDemo()
after(() => demo.stop())

describe('tables of the demo', () => {
  const idsOf = (text: string, table: string, column = 0) => rowsOf(text, table).map((cells) => cells[column])
  const column = async (sql: string) => (await demo.query(sql)).map((row) => Object.values(row)[0])
  const isBefore = (one: Fact, field: string, end: string) => one[field] !== null && one[field]! < end
  /** The end of a month, or of the period. */
  const endOf = (month: string) =>
    [new Date(Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5)))).toISOString().slice(0, 10), TO].sort()[0]!

  test('revenue by month and kind; conversion of a funnel by month', async () => {
    const sales = await demo.facts(SALES)
    const text = await demo.page('/revenue')
    const labels = [.../<table id="split">.*?<\/thead>/s.exec(text)![0].matchAll(/<th scope[^>]*>([^<]*)</g)].map(
      ([, one]) => one!,
    )
    assert.equal(labels.at(-1), 'Total')
    const kinds = labels.slice(1, -1).map((label) => label.toLowerCase().replace('-', '_'))
    for (const [month, ...shown] of rowsOf(text, 'split'))
      for (const [n, kind] of kinds.entries())
        near(shown[n], cents(sales.filter((one) => one.month === month && one.kind === kind)), `${month} ${kind}`)
    assert.deepEqual(
      [...kinds].sort(),
      [...new Set(sales.filter((one) => Number(one.cents) > 0).map(({ kind }) => kind))].sort(),
    )
    const sessions = (await demo.facts(SESSIONS)).filter(({ funnel }) => funnel === 'fun_sleep')
    for (const [month, n, , share] of rowsOf(await demo.page('/funnels/fun_sleep'), 'conversion')) {
      const own = sessions.filter((one) => one.month === month)
      assert.equal(Number(n), own.length, month)
      near(share, count(own, 'paid') / own.length, month!)
    }
  })

  test('the last row of a table by month has the rates of the whole period', async () => {
    for (const [path, id, tile] of [
      ['/subscriptions', 'trials', 'Trial conversion'],
      ['/charges', 'acceptance', 'Acceptance rate'],
      ['/funnels', 'conversion', 'Conversion'],
    ] as const) {
      const text = await demo.page(path)
      const foot = text.split(`<table id="${id}">`)[1]!.split('<tfoot>')[1]!.split('</tfoot>')[0]!
      const cells = [...foot.matchAll(/<t[dh][^>]*>([^<]*)</g)].map(([, cell]) => cell)
      assert.ok(cells.includes(tilesOf(text)[tile]!), `${path} ${cells}`)
    }
  })

  test('the total of funnels has the rates of all their sessions', async () => {
    const sessions = (await demo.facts(SESSIONS)).filter(({ funnel }) => funnel !== '')
    const text = await demo.page('/funnels')
    const table = text.split('<table id="funnels">')[1]!.split('</table>')[0]!
    const labels = [...table.matchAll(/<th scope="col"[^>]*>([^<]*)</g)].map(([, label]) => label)
    const total = [...table.split('<tfoot>')[1]!.matchAll(/<t[dh][^>]*>([^<]*)</g)].map(([, cell]) => cell)
    const rate = (step: string) => `${((100 * count(sessions, step)) / sessions.length).toFixed(1)}%`
    assert.equal(total[labels.indexOf('Conversion')], rate('paid'))
    assert.equal(total[labels.indexOf('Reply rate')], rate('replied'))
    const dollars = (shown: string | undefined) => Number(shown!.replace(/[$,]/g, ''))
    const left = /Not in the table: (\$[\d.,]+\d) of revenue/.exec(text)![1]
    near(
      String(dollars(left) + dollars(total[labels.indexOf('Revenue')])),
      dollars(tilesOf(text)['Revenue']),
      'all revenue',
    )
  })

  test('change of revenue by country, including countries that had revenue only before', async () => {
    const rows = rowsOf(await demo.page('/revenue', `${PERIOD}&split=country`), 'change')
    const start = addDays(FROM, -200)
    const before = await demo.facts(SALES, `at >= '${start}Z' and at < '${FROM}Z'`)
    const now = await demo.facts(SALES)
    const ofCountry = (own: Fact[], key: string) => cents(own.filter(({ country }) => country === key))
    assert.equal(rows.length, 12)
    const differences = rows.slice(0, -2).map(([key, ...cells]) => {
      const [was, is, difference, change] = cells.map(Number)
      assert.deepEqual([was, is], [ofCountry(before, key!), ofCountry(now, key!)], key)
      near(String(difference), is! - was!, key!)
      near(String(change), is! / was! - 1, key!)
      return Math.abs(difference!)
    })
    assert.deepEqual(
      differences,
      differences.toSorted((a, b) => b - a),
    )
    const [others, all] = rows.slice(-2).map((cells) => cells.slice(1, 3).map(Number))
    assert.deepEqual(all, [cents(before), cents(now)])
    near(String(others![1]), all![1]! - rows.slice(0, -2).reduce((sum, [, , one]) => sum + Number(one), 0), 'others')
  })

  test('MRR and paying subscriptions at the end of each month, and retention by month of the first payment', async () => {
    const text = await demo.page('/subscriptions')
    const all = (await demo.facts(SUBSCRIPTIONS, ALL)).filter(({ began }) => began !== null)
    const paying = (end: string) => all.filter((one) => isBefore(one, 'began', end) && !isBefore(one, 'ended', end))
    for (const [month, n] of rowsOf(text, 'paying')) assert.equal(Number(n), paying(endOf(month!)).length, month)
    for (const [month, mrr] of rowsOf(text, 'mrr')) {
      const worth = paying(endOf(month!)).reduce((sum, one) => sum + Number(one.worth), 0) / 100
      assert.ok(Math.abs(Number(mrr) - worth) < 0.02, `${month} ${mrr} is not ${worth}`)
    }
    const cohorts = rowsOf(text, 'cohorts')
    assert.ok(cohorts.length >= 6)
    for (const [month, size, ...shares] of cohorts) {
      const own = all.filter(({ began }) => began!.slice(0, 7) === month && began! < TO)
      assert.equal(Number(size), own.length, month)
      for (const [n, share] of shares.entries()) {
        if (share === '') continue
        const last = new Date(Date.UTC(Number(month!.slice(0, 4)), Number(month!.slice(5)) - 1 + n))
          .toISOString()
          .slice(0, 7)
        const left = own.filter((one) => !isBefore(one, 'ended', endOf(last))).length
        near(share, left / own.length, `${month} after ${n}`)
      }
    }
  })

  test('churn and trials by month', async () => {
    const all = await demo.facts(SUBSCRIPTIONS, ALL)
    const within = (at: string | null | undefined, month: string) =>
      at !== null && at! >= [`${month}-01`, FROM].sort()[1]! && at! < endOf(month)
    const text = await demo.page('/subscriptions')
    let ended = 0
    for (const [month, , , count, churn] of rowsOf(text, 'flow')) {
      const own = all.filter((one) => one.began !== null && within(one.ended, month!))
      const start = [`${month}-01`, FROM].sort()[1]!
      const paying = all.filter((one) => isBefore(one, 'began', start) && !isBefore(one, 'ended', start))
      assert.equal(Number(count), own.length, month)
      near(churn, own.length / paying.length, `${month} churn`)
      ended += own.length
    }
    assert.ok(ended > 0)
    for (const [month, trials, share] of rowsOf(text, 'trials')) {
      const own = all.filter(({ at, trial }) => trial === 't' && within(at, month!))
      assert.equal(Number(trials), own.length, month)
      if (own.length > 0)
        near(share, own.filter(({ began }) => began !== null).length / own.length, `${month} conversion`)
    }
  })

  test('acceptance by month, provider and merchant account; refunds and chargebacks by month', async () => {
    const attempts = await demo.facts(ATTEMPTS)
    const text = await demo.page('/charges')
    const succeeded = (own: Fact[]) => own.filter(({ status }) => status === 'succeeded').length
    for (const [month, , share] of rowsOf(text, 'acceptance')) {
      const own = attempts.filter((one) => one.month === month)
      near(share, succeeded(own) / own.length, month!)
    }
    const outcomes = (own: Fact[]) => [own.length, succeeded(own), own.length - succeeded(own)]
    const shown = rowsOf(text, 'providers').map(([key, , ...cells]) => [key!, ...cells.slice(0, 3).map(Number)])
    assert.deepEqual(shown, grouped(attempts, 'provider', outcomes))
    const accounts = rowsOf(text, 'accounts')
    assert.equal(accounts.length, 2)
    assert.deepEqual(
      accounts.map(([key, , , ...cells]) => [key!, ...cells.slice(0, 3).map(Number)]),
      grouped(attempts, 'account', outcomes),
    )
    for (const [, provider, rate, all, accepted] of accounts) {
      assert.equal(provider, 'simulator')
      near(rate, Number(accepted) / Number(all), 'rate')
    }
    const back = await demo.facts(BACK)
    for (const [month, ...moved] of rowsOf(await demo.page('/refunds'), 'money-back'))
      for (const [n, type] of ['refund', 'chargeback'].entries())
        near(moved[n], cents(back.filter((one) => one.month === month && one.type === type)), `${month} ${type}`)
  })

  test('lists: subscriptions, filtered too, people, refunds and disputes, accounts, keys, projects', async () => {
    const subscriptions = `select id from subscriptions where project_id = 'demo'`
    const newest = 'order by created_at desc, id desc limit 20'
    const page = (path: string, more = '') => demo.page(path, `${OF_DEMO}${more}`)
    assert.deepEqual(idsOf(await page('/subscriptions'), 'subscriptions'), await column(`${subscriptions} ${newest}`))
    assert.deepEqual(
      idsOf(await page('/subscriptions', '&status=unpaid'), 'subscriptions'),
      await column(`${subscriptions} and status = 'unpaid' ${newest}`),
    )
    const people = await demo.query(
      `select coalesce(email, id) as who, concat_ws(' ', (select status from subscriptions s
         where s.project_id = 'demo' and s.profile_id = p.id order by created_at desc, id desc limit 1),
         case when anonymized_at is not null then 'erased' end, case when preview then 'preview' end) as status
       from profiles p where project_id = 'demo' order by email is null, created_at desc, id desc limit 20`,
    )
    assert.deepEqual(
      rowsOf(await page('/people'), 'people').map(([who, state]) => ({ who, status: state })),
      people,
    )
    const back = (types: string) =>
      column(`select r.trx_id from report_transactions r join customers c using (organization_id, external_id)
        where c.project_id = 'demo' and r.psp_transaction_type in (${types})
        order by r.trx_created_at desc, r.trx_id desc limit 20`)
    assert.deepEqual(
      idsOf(await demo.page('/refunds', 'project=demo&period=24m'), 'movements', 8),
      await back(`'refund', 'chargeback', 'chargeback_reversal'`),
    )
    assert.deepEqual(
      idsOf(await demo.page('/refunds', 'project=demo&period=24m&type=chargeback'), 'movements', 8),
      await back(`'chargeback'`),
    )
    assert.deepEqual(
      new Set(idsOf(await page('/merchant-accounts'), 'merchant-accounts', 1)),
      new Set(await column(`select psp_merchant_id from merchant_accounts where organization_id = 'demo'`)),
    )
    assert.deepEqual(
      idsOf(await page('/projects'), 'projects', 1),
      await column('select id from projects order by created_at desc, id desc'),
    )
    const keys = await page('/keys')
    for (const owner of ['project', 'organization'])
      assert.equal(
        rowsOf(keys, `${owner}-keys`).length,
        Number(
          (
            await column(
              `select count(*) from secret_keys where ${owner === 'project' ? "project_id = 'demo'" : "organization_id = 'demo' and project_id is null"}`,
            )
          )[0],
        ),
      )
  })

  test('a person: subscriptions, transactions, customers and replies; the search leads to the person, by e-mail and by id', async () => {
    const [one] = await demo.query(
      `select c.profile_id as id, c.external_id, p.email from customers c
       join profiles p on p.project_id = c.project_id and p.id = c.profile_id
       where c.project_id = 'demo' and p.email is not null
         and exists (select from subscriptions s where s.project_id = 'demo' and s.profile_id = c.profile_id)
         and exists (select from replies r join sessions s on s.project_id = r.project_id and s.id = r.session_id
           where s.project_id = 'demo' and s.profile_id = c.profile_id)
       order by c.created_at limit 1`,
    )
    const text = await demo.page(`/people/${one!.id}`, OF_DEMO)
    const own = (table: string) =>
      column(
        `select id from ${table} where project_id = 'demo' and profile_id = '${one!.id}' order by created_at desc, id desc`,
      )
    assert.deepEqual(idsOf(text, 'subscriptions'), await own('subscriptions'))
    assert.deepEqual(
      rowsOf(text, 'transactions').map(([id]) => id!.split(' ')[0]),
      await own('transactions'),
    )
    const customers = `select external_id as id from customers where project_id = 'demo' and profile_id = '${one!.id}' order by 1`
    assert.deepEqual(idsOf(text, 'customers').sort(), await column(customers))
    const [replies] =
      await column(`select count(*) from replies r join sessions s on s.project_id = r.project_id and s.id = r.session_id
      where s.project_id = 'demo' and s.profile_id = '${one!.id}'`)
    assert.equal(
      [...text.matchAll(/<dl class="replies">.*?<\/dl>/gs)].flatMap(([list]) => [...list.matchAll(/<dt[ >]/g)]).length,
      Number(replies),
    )
    for (const q of [one!.email!, one!.id!, one!.external_id!])
      assert.equal(await demo.redirect('/people', `q=${encodeURIComponent(q)}`), `/people/${one!.id}?project=demo`, q)
  })

  test('a person: refunds and disputes of all payments, imported ones too', async () => {
    const back = `report_transactions r join customers c using (organization_id, external_id)
      where c.project_id = 'demo' and c.profile_id is not null and r.psp_transaction_type <> 'sale'`
    const people = await demo.query(`select c.profile_id as id, count(distinct r.psp_transaction_type) as kinds
      from ${back} group by 1 order by kinds desc, count(*) desc, 1 limit 3`)
    for (const { id } of people) {
      const expected = await demo.query(`select r.amount::float8::text as amount, r.order_id from ${back}
        and c.profile_id = '${id}' order by r.trx_created_at desc, r.trx_id desc`)
      const shown = rowsOf(await demo.page(`/people/${id}`, OF_DEMO), 'money-back')
      assert.deepEqual(
        shown.map(([, amount, , , order]) => ({ amount, order_id: order })),
        expected,
      )
    }
  })

  test('a person: declined payments, with the reason and the subscription they were for', async () => {
    const declined = `report_transactions r join customers c using (organization_id, external_id)
      where c.project_id = 'demo' and c.profile_id is not null and r.psp_transaction_type = 'sale' and r.status = 'failed'`
    const people = await demo.query(`select c.profile_id as id, bool_or(r.meta_subs_id is not null) as renewal
      from ${declined} group by 1 order by renewal desc, count(*) desc, 1 limit 3`)
    assert.equal(people[0]?.renewal, 't')
    for (const { id } of people) {
      const expected = await demo.query(`select r.order_id, r.amount::float8::text as amount,
        coalesce(r.psp_reason_decline_type, '') as type, coalesce(r.meta_subs_id, '') as subscription from ${declined}
        and c.profile_id = '${id}' order by r.trx_created_at desc, r.trx_id desc`)
      const shown = rowsOf(await demo.page(`/people/${id}`, OF_DEMO), 'declined')
      assert.deepEqual(
        shown.map(([order_id, amount, , , type, , subscription]) => ({ order_id, amount, type, subscription })),
        expected,
      )
    }
  })
})
