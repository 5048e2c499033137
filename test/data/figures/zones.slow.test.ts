// Figures of a project in its time zone and in its reporting currency, compared with plain SQL on the records.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { figuresAsOf } from '../../../src/data/figures/as-of.ts'
import { storeRates } from '../../../src/payments/billing/rates/store-rates.ts'
import { assertExact, figuresOf } from '../../support/figures.ts'
import { type Imports, type Line, line, openImports } from '../../support/imports.ts'

const MINUTES = 47
const FIRST = Date.parse('2026-10-23T00:00:00Z')
const CURRENCIES = ['EUR', 'USD', 'JPY', 'KZT']
const RATES = { USD: '1.1', JPY: '160.25' }

/** A session and a payment every 47 minutes over the changes of clocks in Madrid, the Azores and St. John's, and in four currencies. */
function records(): Line[] {
  const lines: Line[] = [line.profile({ id: 'pro_1', created_at: '2011-01-01T00:00:00Z' })]
  const add = (n: number, at: string) => {
    lines.push(line.session({ id: `ses_${n}`, profile_id: 'pro_1', created_at: at, query_params: {} }))
    const currency = CURRENCIES[n % CURRENCIES.length]!
    lines.push(
      line.transaction({
        id: `trn_${n}`,
        profile_id: 'pro_1',
        created_at: at,
        price: 100 + n,
        price_usd: 777,
        currency,
      }),
    )
  }
  for (let n = 0; n < 300; n += 1) add(n, new Date(FIRST + n * MINUTES * 60_000).toISOString())
  // Before, on and after the day that Samoa skipped.
  for (const [n, at] of ['2011-12-29T20:00:00Z', '2011-12-30T09:59:59Z', '2011-12-30T10:00:00Z'].entries())
    add(400 + n, at)
  return lines
}

// What an owner would ask of the records, without the code of figures.
const BY_DAY = `
  select to_char(created_at at time zone $2, 'YYYY-MM-DD') as period, count(*)::int as sales,
    (sum(case when currency = 'EUR' then price
      else round(price / power(10::numeric, case currency when 'JPY' then 0 else 2 end) * 100
        / case when created_at > '2026-01-01' then case currency when 'USD' then 1.1 when 'JPY' then 160.25 end end) end) / 100)::text as revenue,
    count(*) filter (where currency = 'KZT' or created_at < '2026-01-01' and currency <> 'EUR')::int as without
  from transactions where project_id = $1 group by 1 order by 1`

const SET = 'update projects set time_zone = $2, reporting_currency = $3 where id = $1'

describe('figures in a time zone and a currency', () => {
  let imports: Imports
  let project: Awaited<ReturnType<Imports['project']>>
  before(async () => {
    imports = await openImports()
    project = await imports.project()
    await imports.run(project, records())
    const days = Array.from({ length: 6 }, (_, n) => `2026-10-${18 + n * 2}`)
    const rates = days.flatMap((day) =>
      Object.entries(RATES).map(([currencyCode, perEuro]) => ({ day, currencyCode, perEuro })),
    )
    await storeRates(imports.db, rates, project.organizationId)
  })
  after(() => imports.stop())

  for (const zone of ['Pacific/Auckland', 'America/St_Johns', 'Europe/Madrid', 'Atlantic/Azores', 'Pacific/Apia']) {
    test(`equal the records by day in ${zone}, in euros; what has no rate is counted`, async () => {
      const { db } = imports
      await db.query(SET, [project.id, zone, 'EUR'])
      assert.equal(await figuresAsOf(db, [project.id]), null, 'no figure of the old settings is complete')
      await assertExact(db, project.id)
      assert.notEqual(await figuresAsOf(db, [project.id]), null)

      const all = { from: '2011-01-01', to: '2027-01-01' }
      const names = 'revenue sales without_usd'
      const found = await figuresOf(db, project.id, names, { ...all, period: 'day' })
      const wanted = await imports.rows(BY_DAY, [project.id, zone])
      assert.deepEqual(
        found.map(({ period, revenue, sales, without_usd }) => [period, revenue, sales, without_usd]),
        wanted.map(({ period, revenue, sales, without }) => [period, Number(revenue), Number(sales), Number(without)]),
      )
      assert.ok(found.some(({ without_usd }) => without_usd! > 0))

      const [whole] = await figuresOf(db, project.id, names, all)
      for (const period of ['day', 'week', 'month'] as const) {
        const parts = await figuresOf(db, project.id, names, { ...all, period })
        for (const name of ['revenue', 'sales', 'without_usd'] as const)
          assert.equal(
            Math.round(parts.reduce((sum, one) => sum + (one[name] ?? 0), 0) * 100),
            Math.round(whole![name]! * 100),
            `${name} by ${period}`,
          )
      }
    })
  }

  test('a day that does not exist has no figures, an hour that comes twice is one', async () => {
    const { db } = imports
    await db.query(SET, [project.id, 'Pacific/Apia', 'USD'])
    await assertExact(db, project.id)
    const days = await figuresOf(db, project.id, 'sessions', { from: '2011-12-28', to: '2012-01-02', period: 'day' })
    assert.deepEqual(days, [
      { period: '2011-12-29', sessions: 2 },
      { period: '2011-12-31', sessions: 1 },
    ])
    // In US dollars the values that were stored with the payments count.
    const [dollars] = await figuresOf(db, project.id, 'revenue without_usd')
    assert.deepEqual(dollars, { revenue: 2331, without_usd: 0 })

    await db.query(SET, [project.id, 'Europe/Madrid', 'USD'])
    await assertExact(db, project.id)
    const day = { from: '2026-10-25', to: '2026-10-26', dimension: 'hour' }
    const hours = await figuresOf(db, project.id, 'sessions', day)
    const [sql] = await imports.rows(
      `select count(*) as n from sessions where project_id = $1 and created_at >= '2026-10-25T00:00:00Z' and created_at < '2026-10-25T02:00:00Z'`,
      [project.id],
    )
    assert.equal(hours.length, 24)
    assert.equal(hours.find(({ key }) => key === '02')!.sessions, Number(sql!.n))
    const [whole] = await figuresOf(db, project.id, 'sessions', { ...day, dimension: undefined as never })
    assert.equal(
      whole!.sessions,
      hours.reduce((sum, { sessions }) => sum + sessions!, 0),
    )
  })
})
