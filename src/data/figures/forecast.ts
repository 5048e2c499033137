// What the next days may bring: payments that are due, and how many of them were made in the last ninety days.
import { addDays } from '../../lib/days.ts'
import type { Db } from '../../lib/pg/db.ts'
import { type Filter, readFigures } from './read.ts'
import { renewals } from './renewals.ts'
import { minorUnitsOf, share } from './rounding.ts'
import { currencyOf } from './settings.ts'
import { type Place, type Source, sourcesOf, sumOver } from './source.ts'

export const FORECAST_DAYS = 30
const SEEN_DAYS = 90

export interface Forecast {
  /** Renewals divided by renewals and ends in the last ninety days, and paid trials by trials; null without any. */
  renewal_rate: number | null
  trial_rate: number | null
  /** All in the reporting currency. `expected` is what is due times these rates. */
  days: {
    day: string
    renewals: number
    renewals_due: number
    trials: number
    trials_due: number
    expected: number | null
  }[]
  without_usd: number
}

/** The forecast for the thirty days from tomorrow. */
export async function readForecast(
  db: Db,
  projectId: string,
  today: string,
  { test, filters = [] }: { test: boolean; filters?: readonly Filter[] },
): Promise<Forecast> {
  const projects = [projectId]
  const seen = { from: addDays(today, -SEEN_DAYS), to: today, projects, money: 'usd', test, filters } as const
  const coming = { from: addDays(today, 1), to: addDays(today, FORECAST_DAYS + 1) }
  const [due, renewed, ended, currency] = await Promise.all([
    dueOn(db, { projects, dimensions: ['due'], filters, days: coming }, test),
    readFigures(db, { ...seen, metrics: ['sales'], filters: [{ dimension: 'kind', value: 'renewal' }, ...filters] }),
    readFigures(db, { ...seen, metrics: ['ended', 'trials', 'converted'] }),
    currencyOf(db, projects),
  ])
  const units = minorUnitsOf(currency)
  const count = renewed[0]?.values.sales ?? 0
  const { ended: ends = 0, trials = 0, converted = 0 } = ended[0]?.values ?? {}
  const renewal_rate = share(count, count + (ends ?? 0))
  const trial_rate = share(converted, trials)
  return {
    renewal_rate,
    trial_rate,
    without_usd: due.reduce((sum, one) => sum + Number(one.without_usd), 0),
    days: Array.from({ length: FORECAST_DAYS }, (_, n) => {
      const day = addDays(today, n + 1)
      const of = (kind: string) => due.find((one) => one.day === day && one.key === kind)
      const [renewal, trial] = [of('renewal'), of('trial')]
      const [renewals_due, trials_due] = [Number(renewal?.minor ?? 0) / units, Number(trial?.minor ?? 0) / units]
      const isUnknown = (renewals_due > 0 && renewal_rate === null) || (trials_due > 0 && trial_rate === null)
      return {
        day,
        renewals: Number(renewal?.subscriptions ?? 0),
        renewals_due,
        trials: Number(trial?.subscriptions ?? 0),
        trials_due,
        expected: isUnknown
          ? null
          : Math.round((renewals_due * (renewal_rate ?? 0) + trials_due * (trial_rate ?? 0)) * units) / units,
      }
    }),
  }
}

async function dueOn(db: Db, place: Place & { days: { from: string } }, test: boolean) {
  const sources = await sourcesOf(db, renewals, place)
  const statement = ({ table, where, columns, add }: Source) => `
    select day::text, ${columns.due} as key, sum(subscriptions) as subscriptions, sum(gross_usd) as minor, sum(without_usd) as without_usd
    from ${table} where ${where} and day >= ${add(place.days.from)}::date and day < ${add(place.days.to)}::date and (not test or ${add(test)})
    group by 1, 2`
  return sumOver(db, sources, statement, (name) => ['subscriptions', 'minor', 'without_usd'].includes(name))
}
