// Compares figures with those of earlier days: which days these are, and which figures belong together.
import { addDays, addMonths, DAY_MS } from '../../lib/days.ts'
import type { Days } from './compute.ts'
import { type MetricName, metrics } from './metrics.ts'
import { type Period, startOf } from './periods.ts'
import { byOrder, type Figure, order, type Question, type Values } from './read.ts'

export type Comparison = 'previous' | 'month' | 'year'

/** The days to compare with: as many days directly before, or the same days a month or a year earlier. */
export function comparedDays({ from, to }: Days, compare: Comparison): Days {
  if (compare === 'year') return { from: yearBefore(from), to: endBefore(to, yearBefore) }
  if (compare === 'month') return { from: monthBefore(from), to: endBefore(to, monthBefore) }
  const length = Date.parse(to) - Date.parse(from)
  return { from: new Date(Date.parse(from) - length).toISOString().slice(0, 10), to: from }
}

/** The same day of the previous month, or the last day of that month. */
function monthBefore(day: string): string {
  const lastBefore = addDays(`${day.slice(0, 7)}-01`, -1)
  return [`${lastBefore.slice(0, 7)}-${day.slice(8)}`, lastBefore].sort()[0]!
}

/** The exclusive end of the same days earlier. Whole months end with the last day of the month. */
const endBefore = (end: string, before: (day: string) => string) =>
  end.endsWith('-01') ? before(end) : addDays(before(addDays(end, -1)), 1)

/** The same day a year earlier; the 29th of February becomes the 28th. */
function yearBefore(day: string): string {
  const [year, rest] = [Number(day.slice(0, 4)) - 1, day.slice(4)]
  return `${String(year).padStart(4, '0')}${rest === '-02-29' ? '-02-28' : rest}`
}

interface Compared extends Figure {
  previous: Values
}

/**
 * Adds to each figure the values of the days `other`. A figure that only those days have gets the values of a period without
 * records, so that what has ceased is seen, too.
 */
export function withPrevious(figures: Figure[], others: Figure[], question: Question, other: Days): Compared[] {
  const before = new Map(moved(others, question, other).map((figure) => [order(figure), figure]))
  const found = new Map(figures.map((figure) => [order(figure), figure]))
  return [...new Map([...before, ...found]).values()].sort(byOrder(question)).map((figure) => {
    const previous = before.get(order(figure))?.values ?? {}
    return { ...figure, values: { ...withoutRecords(previous), ...found.get(order(figure))?.values }, previous }
  })
}

/** The values of the same metrics in a period without records. */
const withoutRecords = (values: Values): Values =>
  Object.fromEntries(Object.keys(values).map((name) => [name, 'of' in metrics[name as MetricName] ? null : 0]))

/** The figures of the days `other` in the periods of the question, without those that have no counterpart there. */
function moved(figures: Figure[], { from, to, period }: Question, other: Days): Figure[] {
  if (period === undefined) return figures
  const days = (Date.parse(from) - Date.parse(other.from)) / DAY_MS
  const first = startOf(Date.parse(from), period)
  return figures
    .map((figure) => ({ ...figure, period: laterBy(days, figure.period!, period) }))
    .filter((figure) => figure.period >= first && figure.period < to)
}

const MONTH_DAYS = 30.4375

/** The start of the period that is so many days later, in whole weeks or months. */
function laterBy(days: number, start: string, period: Period): string {
  if (period === 'day') return addDays(start, days)
  if (period === 'week') return addDays(start, Math.round(days / 7) * 7)
  return addMonths(start, Math.round(days / MONTH_DAYS))
}
