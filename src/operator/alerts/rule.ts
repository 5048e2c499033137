// A rule and the figure that it is about.
import { type MetricName, metrics } from '../../data/figures/metrics.ts'
import { type Filter, readFigures } from '../../data/figures/read.ts'
import { addDays } from '../../lib/days.ts'
import type { Db } from '../../lib/pg/db.ts'

export interface Rule {
  id: string
  metric: MetricName
  condition: 'below' | 'above' | 'change'
  threshold: number
  today: boolean
  fromHour: number
  filter: Filter | undefined
}

/** A figure with what a message about it says. */
export interface Reading {
  day: string
  /** Null without a divisor, such as a rate of no sessions. */
  value: number | null
  /** The figure of the same weekday a week earlier, for a change. */
  before: number | null
  /** The hours of today that are counted; undefined: the whole day. */
  hours: number | undefined
  /** The number of amounts that have no value in the currency of the figure. */
  without: number
  /** What the MRR leaves out for the same reason. */
  mrrWithout: Amount[]
}

export interface Amount {
  currency: string
  amount: number
}

/** The metric that counts the amounts without a value; undefined if the metric is no money, or all of it has one. */
export function withoutOf(metric: MetricName): MetricName | undefined {
  if (metrics[metric].unit !== 'money') return undefined
  return WITHOUT[metrics[metric].family.table]
}

const WITHOUT: Readonly<Record<string, MetricName>> = {
  figures_sales: 'without_usd',
  figures_spend: 'spend_without_usd',
  figures_declines: 'declines_without_usd',
  figures_returned: 'payments_without_usd',
}

type Values = Partial<Record<MetricName, number | null>>

/** The figures of one day. */
export async function figureOf(
  db: Db,
  projectId: string,
  day: string,
  names: readonly MetricName[],
  filter?: Filter,
): Promise<Values> {
  const question = { projects: [projectId], metrics: names, from: day, to: addDays(day, 1), money: 'usd' as const }
  const found = await readFigures(db, { ...question, test: false, ...(filter && { filters: [filter] }) })
  return Object.assign({}, ...found.map(({ values }) => values))
}

/** What the MRR of a day leaves out of each currency. Its subscriptions are not counted. */
export async function mrrWithout(db: Db, projectId: string, day: string, filter?: Filter): Promise<Amount[]> {
  const question = {
    projects: [projectId],
    metrics: ['mrr_unvalued'] as const,
    from: day,
    to: addDays(day, 1),
    test: false,
  }
  const filters = filter && { filters: [filter] }
  const found = await readFigures(db, { ...question, ...filters, dimension: 'currency', money: 'own' })
  return found.flatMap(({ currency, values: { mrr_unvalued: amount } }) =>
    // What floating point leaves of a sum of 0 is nothing.
    currency && amount && Math.abs(amount) > 0.00005 ? [{ currency, amount }] : [],
  )
}

/** A day without records has the sum 0, and no rate. */
export const valueIn = (values: Values, metric: MetricName): number | null =>
  values[metric] ?? ('of' in metrics[metric] ? null : 0)

/** The change in percent; undefined without a figure to compare with. */
export const changeOf = ({ value, before }: Pick<Reading, 'value' | 'before'>): number | undefined =>
  value === null || before === null || before === 0 ? undefined : ((value - before) / Math.abs(before)) * 100

/** Whether a message is sent. */
export function isReached({ condition, threshold }: Rule, reading: Reading): boolean {
  if (reading.value === null) return false
  if (condition === 'below') return reading.value < threshold
  if (condition === 'above') return reading.value > threshold
  const change = changeOf(reading)
  return change !== undefined && (threshold < 0 ? change <= threshold : change >= threshold)
}
