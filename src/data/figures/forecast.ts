// What the next days may bring: payments that are due, and how many of them were made in the last ninety days.
import { addDays } from '../../lib/days.ts'
import type { Db } from '../../lib/pg/db.ts'
import { readFigures } from './read.ts'
import { minorUnitsOf, share } from './rounding.ts'
import { currencyOf } from './settings.ts'

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
export async function readForecast(db: Db, projectId: string, today: string, test: boolean): Promise<Forecast> {
  const projects = [projectId]
  const seen = { from: addDays(today, -SEEN_DAYS), to: today, projects, money: 'usd', test } as const
  const [due, renewed, ended, currency] = await Promise.all([
    db.query(DUE_ON, [projectId, addDays(today, 1), addDays(today, FORECAST_DAYS + 1), test]),
    readFigures(db, { ...seen, metrics: ['sales'], filter: { dimension: 'kind', value: 'renewal' } }),
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

const DUE_ON = `
  select day::text, key, sum(subscriptions) as subscriptions, sum(gross_usd) as minor, sum(without_usd) as without_usd
  from figures_renewals where project_id = $1 and split = 'due' and day >= $2::date and day < $3::date and (not test or $4)
  group by day, key`
