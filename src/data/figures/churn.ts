// Who leaves: subscriptions that ended as a share of those that were paying before, and trials that were paid for, by a dimension.
import { addDays } from '../../lib/days.ts'
import type { Db } from '../../lib/pg/db.ts'
import { type Figure, type Filter, type Question, type QuestionOfDays, readFigures } from './read.ts'
import { share } from './rounding.ts'

export const CHURN_BY = ['product', 'funnel', 'country', 'cohort', 'reason'] as const

export interface ChurnQuestion extends QuestionOfDays {
  by?: (typeof CHURN_BY)[number]
}

export interface Churn {
  /** The value of `by`; null for all together. */
  key: string | null
  /** Paying subscriptions before the first day. */
  paying: number
  ended: number
  churn_rate: number | null
  /** The MRR of people who left, in the reporting currency, and its part of the MRR before the first day. */
  mrr_lost: number
  mrr_churn_rate: number | null
  /** Trials that began on these days, and those that were paid for since. Null by reason: a trial has none. */
  trials: number | null
  converted: number | null
  trial_conversion: number | null
}

const LEFT: Filter = { dimension: 'movement', value: 'churn' }

/** Those with the most ends first. */
export async function readChurn(db: Db, { by, ...days }: ChurnQuestion): Promise<Churn[]> {
  const ask = (metrics: Question['metrics'], more: Partial<Question> = {}) =>
    readFigures(db, { ...days, metrics, money: 'usd', ...(by !== undefined && { dimension: by }), ...more })
  const isByReason = by === 'reason'
  const before = { from: addDays(days.from, -1), to: days.from }
  const [atStart, ends, lost, trials] = await Promise.all([
    isByReason
      ? readFigures(db, { ...days, ...before, metrics: ['paying', 'mrr'], money: 'usd' })
      : ask(['paying', 'mrr'], before),
    ask(['ended']),
    ask(['mrr_change'], { filters: [LEFT, ...(days.filters ?? [])] }),
    isByReason ? [] : by === 'cohort' ? trialsByMonth(db, days) : ask(['trials', 'converted']),
  ])
  const valuesOf = (found: Figure[]) => new Map(found.map(({ key, values }) => [key ?? '', values]))
  const [start, gone, left, tried] = [atStart, ends, lost, trials].map(valuesOf) as [Values, Values, Values, Values]
  const keys = isByReason
    ? [...gone.keys()]
    : [...new Set([start, gone, left, tried].flatMap((one) => [...one.keys()]))]
  return keys
    .map((key): Churn => {
      const { paying = 0, mrr = 0 } = start.get(isByReason ? '' : key) ?? {}
      const ended = gone.get(key)?.ended ?? 0
      const mrr_lost = Math.abs(left.get(key)?.mrr_change ?? 0)
      const { trials: began = 0, converted = 0 } = tried.get(key) ?? {}
      return {
        key: by === undefined ? null : key,
        paying: paying ?? 0,
        ended,
        churn_rate: share(ended, paying),
        mrr_lost,
        mrr_churn_rate: share(mrr_lost, mrr),
        trials: isByReason ? null : began,
        converted: isByReason ? null : converted,
        trial_conversion: isByReason ? null : share(converted, began),
      }
    })
    .filter(({ paying, ended, trials: began }) => ended > 0 || began || (!isByReason && paying > 0))
    .sort((a, b) => b.ended - a.ended || b.paying - a.paying || ((a.key ?? '') < (b.key ?? '') ? -1 : 1))
}

type Values = Map<string, Figure['values']>

/** The cohort of a trial is the month in which it began: that of a payment is only known of those that were paid for. */
async function trialsByMonth(db: Db, days: Omit<ChurnQuestion, 'by'>): Promise<Figure[]> {
  const found = await readFigures(db, { ...days, metrics: ['trials', 'converted'], money: 'usd', period: 'month' })
  return found.map((one) => ({ ...one, key: one.period!.slice(0, 7) }))
}
