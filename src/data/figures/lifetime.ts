// The worth of people (lifetime value): net revenue for each person by cohort and by the whole months since.
import { addDays } from '../../lib/days.ts'
import type { Db } from '../../lib/pg/db.ts'
import { startOf } from './periods.ts'
import { type Filter, type QuestionOfDays, readFigures } from './read.ts'
import { minorUnitsOf, rounded, share } from './rounding.ts'
import { currencyOf } from './settings.ts'
import { END, type Source, sourcesOf, sumOver } from './source.ts'
import { worth } from './worth.ts'

export const SINCE = ['session', 'payment'] as const
export const COHORTS = ['week', 'month'] as const
export const LIFETIME_BY = ['source', 'campaign', 'funnel', 'product', 'country', 'variant'] as const

/** The most months since the beginning that are shown. */
const MAX_MONTHS = 36

/** Of the cohorts that began on these days, which are made whole weeks or months. */
export interface LifetimeQuestion extends QuestionOfDays {
  since: (typeof SINCE)[number]
  cohort: (typeof COHORTS)[number]
  by?: (typeof LIFETIME_BY)[number]
  /** Only people with this value of `by`; then the rows are cohorts. */
  value?: string
  today: string
}

export interface Lifetime {
  /** First day of the cohort; null: all of them together. */
  cohort: string | null
  /** Value of `by`. */
  key: string | null
  people: number
  /** Net revenue for each person, up to the end of each month since the beginning. */
  worth: (number | null)[]
  /** How many of these months are over for everybody in the row. */
  complete: number
  /** Payments, refunds and chargebacks that have no value in the reporting currency, and so are left out. */
  without_usd: number
  /** What the sums behind `worth` leave out of each currency, up to the end of each month. */
  unvalued: { currency: string; amounts: number[] }[]
}

/** The rows are cohorts, or the values of a dimension over all cohorts of the period. */
export async function readLifetime(db: Db, question: LifetimeQuestion): Promise<Lifetime[]> {
  const { projects, cohort, by, value, today } = question
  const { from, to } = wholeCohorts(question)
  const isByValue = by !== undefined && value === undefined
  const units = minorUnitsOf(await currencyOf(db, projects))
  const rows = await moneyOf(db, { ...question, from, to }, VALUED)
  const people = await peopleOf(db, { ...question, from, to }, rows)
  const lacks = rows.some(({ without_usd }) => Number(without_usd) > 0)
  const unvalued = lacks ? await moneyOf(db, { ...question, from, to }, UNVALUED) : []
  const places = Map.groupBy(rows, ({ place }) => place!)
  const lacking = Map.groupBy(unvalued, ({ place }) => place!)
  return [...new Set([...people.keys(), ...places.keys()])]
    .map((place): Lifetime => {
      const count = people.get(place) ?? 0
      const last = isByValue ? addDays(to, -1) : addDays(after(place, cohort), -1)
      const first = isByValue ? from : place
      const months = Math.min(MAX_MONTHS, monthsApart(first, today) + 1)
      let sum = 0
      const worth = Array.from({ length: months }, (_, n) => {
        for (const row of places.get(place) ?? []) if (Number(row.months) === n) sum += Number(row.net)
        return share(sum / units, count)
      })
      const complete = Math.max(0, Math.min(months, monthsApart(last, today)))
      return {
        cohort: isByValue ? null : place,
        key: isByValue ? place : (value ?? null),
        people: count,
        worth,
        complete,
        without_usd: (places.get(place) ?? []).reduce((sum, row) => sum + Number(row.without_usd), 0),
        unvalued: byCurrency(lacking.get(place) ?? [], months),
      }
    })
    .filter(({ people, worth }) => people > 0 || worth.some((one) => one))
    .sort(
      isByValue
        ? (a, b) => b.people - a.people || (a.key! < b.key! ? -1 : 1)
        : (a, b) => (a.cohort! < b.cohort! ? -1 : 1),
    )
}

/** The sums of each currency up to each month. */
function byCurrency(rows: Record<string, string | null>[], months: number): Lifetime['unvalued'] {
  return [...Map.groupBy(rows, ({ currency }) => currency!)].map(([currency, own]) => {
    const upTo = (n: number) => own.reduce((sum, row) => sum + (Number(row['months']) <= n ? Number(row['net']) : 0), 0)
    const amounts = Array.from({ length: months }, (_, n) => rounded(upTo(n) / minorUnitsOf(currency)))
    return { currency, amounts }
  })
}

function wholeCohorts({ from, to, cohort }: LifetimeQuestion) {
  return { from: startOf(Date.parse(from), cohort), to: after(startOf(Date.parse(addDays(to, -1)), cohort), cohort) }
}

/** The first day of the next cohort. */
function after(start: string, cohort: LifetimeQuestion['cohort']): string {
  return cohort === 'week' ? addDays(start, 7) : startOf(Date.parse(addDays(start, 31)), 'month')
}

/** The number of whole months from one day to another, at least 0. A month is over on the same day of the next, or on its last day. */
function monthsApart(from: string, to: string): number {
  const [year, month, day] = from.split('-').map(Number) as [number, number, number]
  const [toYear, toMonth, toDay] = to.split('-').map(Number) as [number, number, number]
  const apart = (toYear - year) * 12 + toMonth - month
  const lastOfMonth = new Date(Date.UTC(toYear, toMonth, 0)).getUTCDate()
  return Math.max(0, apart - (Math.min(day, lastOfMonth) > toDay ? 1 : 0))
}

const allFilters = ({ by, value, filters = [] }: LifetimeQuestion): Filter[] => [
  ...(value === undefined ? [] : [{ dimension: by!, value }]),
  ...filters,
]

const VALUED = {
  columns: 'sum(net_usd) as net, sum(customers) as customers, sum(without_usd) as without_usd',
  only: 'true',
  group: '1, 2',
}
/** What has no value in the reporting currency, by its currency too. */
const UNVALUED = { columns: 'currency, sum(net_unvalued) as net', only: 'without_usd > 0', group: '1, 2, 3' }

/** Net revenue by place and months since, of people who began on these days. Money from before they began counts too: all days are read. */
async function moneyOf(db: Db, question: LifetimeQuestion, { columns: sums, only, group }: typeof VALUED) {
  const { projects, since, cohort, by, value, from, to, test } = question
  const isByValue = by !== undefined && value === undefined
  const place = { projects, dimensions: isByValue ? [by] : [], filters: allFilters(question), days: { to: END } }
  const statement = ({ table, where, columns, add }: Source) => `
    select ${isByValue ? columns[by] : `to_char(date_trunc('${cohort}', cohort::timestamp), 'YYYY-MM-DD')`} as place, months,
      ${sums}
    from ${table} where ${where} and ${only} and base = ${add(since)} and cohort >= ${add(from)}::date
      and cohort < ${add(to)}::date and (not test or ${add(test)})
    group by ${group} order by ${group}`
  return sumOver(db, await sourcesOf(db, worth, place), statement, (name) =>
    ['net', 'customers', 'without_usd'].includes(name),
  )
}

/** How many people began, by the place of the row: came for the first time, or paid for the first time. */
async function peopleOf(
  db: Db,
  question: LifetimeQuestion,
  rows: Record<string, string | null>[],
): Promise<Map<string, number>> {
  const { projects, since, cohort, by, value, from, to, test } = question
  if (since === 'payment') {
    const each = [...Map.groupBy(rows, ({ place }) => place!)]
    return new Map(each.map(([place, own]) => [place, own.reduce((sum, row) => sum + Number(row.customers), 0)]))
  }
  const isByValue = by !== undefined && value === undefined
  const found = await readFigures(db, {
    projects,
    metrics: ['people'],
    from,
    to,
    ...(isByValue ? { dimension: by } : { period: cohort }),
    filters: allFilters(question),
    money: 'usd',
    test,
  })
  return new Map(found.map(({ key, period, values }) => [isByValue ? key! : period!, values.people ?? 0]))
}
