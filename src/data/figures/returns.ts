// What advertising brought back: spend, people, customers, and the money of the people who came on these days by their age.
import type { Db } from '../../lib/pg/db.ts'
import { isFilter } from './filters.ts'
import { type Question, type QuestionOfDays, readFigures } from './read.ts'
import { minorUnitsOf, rounded, type Unvalued, unvaluedOf } from './rounding.ts'
import { currencyOf } from './settings.ts'
import { END, type Source, sourcesOf, sumOver } from './source.ts'
import { KEPT_DAYS, worth } from './worth.ts'

/** The days after the first session at which returns are compared with spend. */
export const RETURN_DAYS = [0, 7, 30, 90] as const
export const BY = ['source', 'campaign', 'funnel'] as const

export interface ReturnsQuestion extends QuestionOfDays {
  by?: (typeof BY)[number]
}

export interface Return {
  /** The value of `by`; null for all together. */
  key: string | null
  /** Null if it is not divided by the filter. */
  spend: number | null
  spend_without_usd: number
  sessions: number
  people: number
  customers: number
  cac: number | null
  /** Net revenue up to each day of `RETURN_DAYS`, of the people who came first on these days. */
  returned: number[]
  roas: (number | null)[]
  payback_days: number | null
  /** Gross revenue on these days of the people who came first on these days, for each of them. */
  revenue_per_new_person: number | null
  /** Payments, refunds and chargebacks of these people that have no value in the reporting currency, and so are left out. */
  without_usd: number
  /** What the last of `returned` leaves out of each currency. */
  returned_unvalued: Unvalued[]
  /** What the revenue of `revenue_per_new_person` leaves out of each currency. */
  revenue_unvalued: Unvalued[]
}

/** All in the reporting currency, those with the most spent and the most people first. */
export async function readReturns(db: Db, question: ReturnsQuestion): Promise<Return[]> {
  const { projects, from, to, by, test, filters = [] } = question
  const split: Pick<Question, 'dimension'> = by === undefined ? {} : { dimension: by }
  const [counted, byAge, own, currency] = await Promise.all([
    readFigures(db, {
      projects,
      metrics: ['spend', 'spend_without_usd', 'sessions', 'people', 'customers', 'cac'],
      from,
      to,
      ...split,
      filters,
      money: 'usd',
      test,
    }),
    moneyBack(db, question, BY_AGE),
    moneyBack(db, question, OF_NEW_PEOPLE),
    currencyOf(db, projects),
  ])
  const lacks = [...byAge, ...own].some(({ without_usd }) => Number(without_usd) > 0)
  const unvalued = Map.groupBy(lacks ? await moneyBack(db, question, UNVALUED) : [], ({ key }) => key!)
  const units = minorUnitsOf(currency)
  const isSpent = isFilter('spend', ...filters.map(({ dimension }) => dimension))
  const ages = Map.groupBy(byAge, ({ key }) => key!)
  const revenues = new Map(own.map(({ key, gross }) => [key!, Number(gross) / units]))
  return counted
    .map(({ key, values }): Return => {
      const place = key ?? ''
      const spend = isSpent ? (values.spend ?? 0) : null
      const people = values.people ?? 0
      const sums = accumulated(ages.get(place) ?? [], units)
      const returned = RETURN_DAYS.map((day) => sums(day))
      return {
        key,
        spend,
        spend_without_usd: values.spend_without_usd ?? 0,
        sessions: values.sessions ?? 0,
        people,
        customers: values.customers ?? 0,
        cac: values.spend ? (values.cac ?? null) : null,
        returned,
        roas: returned.map((net) => (spend ? rounded(net / spend) : null)),
        payback_days: spend ? paidBack(sums, spend) : null,
        without_usd: (ages.get(place) ?? []).reduce((sum, row) => sum + Number(row.without_usd), 0),
        returned_unvalued: unvaluedOf(unvalued.get(place), 'net'),
        revenue_unvalued: unvaluedOf(unvalued.get(place), 'gross'),
        revenue_per_new_person: people > 0 ? rounded((revenues.get(place) ?? 0) / people) : null,
      }
    })
    .sort((a, b) => (b.spend ?? 0) - (a.spend ?? 0) || b.people - a.people || ((a.key ?? '') < (b.key ?? '') ? -1 : 1))
}

type Rows = Record<string, string | null>[]

/** The sum of the amounts up to an age, in major units. */
function accumulated(rows: Rows, units: number): (age: number) => number {
  let sum = 0
  const sums = rows.map(({ age, net }) => {
    sum += Number(net)
    return [Number(age), sum] as const
  })
  return (age) => rounded((sums.findLast(([one]) => one <= age)?.[1] ?? 0) / units)
}

/** The first day up to which at least as much came back as was spent; null if it has not. */
function paidBack(sums: (age: number) => number, spend: number): number | null {
  for (let age = 0; age <= KEPT_DAYS; age += 1) if (sums(age) >= spend) return age
  return null
}

type Statement = (key: string, table: string, scope: string, until: string) => string

/** Money of the people who came first on these days. Money from before they came counts too, so that all days are read. */
async function moneyBack(db: Db, { projects, from, to, by, test, filters = [] }: ReturnsQuestion, of: Statement) {
  const dimensions = by === undefined ? [] : [by]
  const sources = await sourcesOf(db, worth, { projects, dimensions, filters, days: { to: END } })
  const statement = ({ table, where, columns, add }: Source) => {
    const until = `${add(to)}::date`
    const scope = `${where} and base = 'session' and (not test or ${add(test)}) and cohort >= ${add(from)}::date and cohort < ${until}`
    return of(by === undefined ? `''` : columns[by]!, table, scope, until)
  }
  return sumOver(db, sources, statement, (name) => ['net', 'gross', 'without_usd'].includes(name))
}

const BY_AGE: Statement = (key, table, scope) => `
  select ${key} as key, age, sum(net_usd) as net, sum(without_usd) as without_usd from ${table} where ${scope} and age <= ${KEPT_DAYS}
  group by 1, 2 order by 1, 2`

const OF_NEW_PEOPLE: Statement = (key, table, scope, until) => `
  select ${key} as key, sum(gross_usd) as gross, sum(without_usd) as without_usd from ${table} where ${scope} and day < ${until}
  group by 1`

const UNVALUED: Statement = (key, table, scope, until) => `
  select ${key} as key, currency, coalesce(sum(net_unvalued) filter (where age <= ${RETURN_DAYS.at(-1)}), 0) as net,
    coalesce(sum(gross_unvalued) filter (where day < ${until}), 0) as gross
  from ${table} where ${scope} and without_usd > 0 group by 1, 2 order by 1, 2`
