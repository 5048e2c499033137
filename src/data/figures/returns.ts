// What advertising brought back: spend, people, customers, and the money of the people who came on these days by their age.
import type { Db } from '../../lib/pg/db.ts'
import { type Question, readFigures } from './read.ts'
import { minorUnitsOf, rounded } from './rounding.ts'
import { currencyOf } from './settings.ts'
import { KEPT_DAYS } from './worth.ts'

/** The days after the first session at which returns are compared with spend. */
export const RETURN_DAYS = [0, 7, 30, 90] as const
export const BY = ['source', 'campaign', 'funnel'] as const

export interface ReturnsQuestion {
  projects: readonly string[]
  /** `to` is the day after the last. */
  from: string
  to: string
  by?: (typeof BY)[number]
  test: boolean
}

type Number_ = number | null

export interface Return {
  /** The value of `by`; null for all together. */
  key: string | null
  spend: number
  spend_without_usd: number
  sessions: number
  people: number
  customers: number
  cac: Number_
  /** Net revenue up to each day of `RETURN_DAYS`, of the people who came first on these days. */
  returned: number[]
  roas: Number_[]
  payback_days: Number_
  /** Gross revenue on these days of the people who came first on these days, for each of them. */
  revenue_per_new_person: Number_
}

/** All in the reporting currency, those with the most spent and the most people first. */
export async function readReturns(db: Db, question: ReturnsQuestion): Promise<Return[]> {
  const { projects, from, to, by, test } = question
  const split: Pick<Question, 'dimension'> = by === undefined ? {} : { dimension: by }
  const [counted, byAge, own, currency] = await Promise.all([
    readFigures(db, {
      projects,
      metrics: ['spend', 'spend_without_usd', 'sessions', 'people', 'customers', 'cac'],
      from,
      to,
      ...split,
      money: 'usd',
      test,
    }),
    db.query(BY_AGE, [projects as string[], by ?? '', from, to, test]),
    db.query(OF_NEW_PEOPLE, [projects as string[], by ?? '', from, to, test]),
    currencyOf(db, projects),
  ])
  const units = minorUnitsOf(currency)
  const ages = Map.groupBy(byAge, ({ key }) => key!)
  const revenues = new Map(own.map(({ key, gross }) => [key!, Number(gross) / units]))
  return counted
    .map(({ key, values }): Return => {
      const place = key ?? ''
      const spend = values.spend ?? 0
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
        roas: returned.map((net) => (spend > 0 ? rounded(net / spend) : null)),
        payback_days: spend > 0 ? paidBack(sums, spend) : null,
        revenue_per_new_person: people > 0 ? rounded((revenues.get(place) ?? 0) / people) : null,
      }
    })
    .sort((a, b) => b.spend - a.spend || b.people - a.people || ((a.key ?? '') < (b.key ?? '') ? -1 : 1))
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

const SCOPE = `project_id = any($1) and split = $2 and base = 'session' and (not test or $5)`

const BY_AGE = `
  select key, age, sum(net_usd) as net from figures_worth
  where ${SCOPE} and cohort >= $3::date and cohort < $4::date and age <= ${KEPT_DAYS}
  group by key, age order by key, age`

const OF_NEW_PEOPLE = `
  select key, sum(gross_usd) as gross from figures_worth
  where ${SCOPE} and cohort >= $3::date and cohort < $4::date and day < $4::date
  group by key`
