// The period of a page: a preset or two days, both in the address, and how its figures are grouped.
import type { Comparison } from '../../data/figures/compare.ts'
import { addDays, addMonths, DAY_MS, readDay } from '../../lib/days.ts'
import { invalidValue } from '../../lib/errors.ts'

export interface Span {
  /** The name of the preset, or `custom`. */
  name: string
  /** First day, and the day after the last. */
  from: string
  to: string
  /** The present day, which is not over. */
  today: string
  compare: Comparison
  /** How a line over the period is grouped: as was chosen, or so that it has 7 to 70 points. */
  by: 'day' | 'week' | 'month'
}

export const presets: Record<string, string> = {
  '7d': '7 days',
  '30d': '30 days',
  '90d': '90 days',
  month: 'This month',
  'last-month': 'Last month',
  '12m': '12 months',
  '24m': '24 months',
}
const DEFAULT = '30d'

export const IN_WRONG_ORDER = 'The first day must not be after the last.'

/** Reads the period from the address; `today` is the present day in the time zone of the page. Nonsense is refused in a sentence. */
export function choosePeriod(query: URLSearchParams, today: string): Span {
  const [given, preset] = [query.get('from'), query.get('period') ?? '']
  const name = given ? 'custom' : Object.hasOwn(presets, preset) ? preset : DEFAULT
  const { from, to } = given ? typedDays(given, query.get('to') || today) : presetDays(name, today)
  const compare =
    chosen(query, 'compare', ['previous', 'month', 'year']) ?? (name.endsWith('month') ? 'month' : 'previous')
  return { name, from, to, today, compare, by: chosen(query, 'by', ['day', 'week', 'month']) ?? grouping(from, to) }
}

function typedDays(first: string, last: string): { from: string; to: string } {
  const days = { from: readDay('from', first), to: addDays(readDay('to', last), 1) }
  if (days.from >= days.to) throw invalidValue(IN_WRONG_ORDER)
  return days
}

function presetDays(name: string, today: string): { from: string; to: string } {
  const to = addDays(today, 1)
  if (name === 'month') return { from: monthsBefore(to, 1), to }
  if (name === 'last-month') return { from: monthsBefore(to, 2), to: monthsBefore(to, 1) }
  const count = Number.parseInt(name, 10)
  return { from: name.endsWith('d') ? addDays(to, -count) : monthsBefore(to, count), to }
}

/** The days that are over, which alone can be compared with others; undefined if none of the period is. */
export function comparable({ from, to, today }: Span): { from: string; to: string } | undefined {
  const end = to < today ? to : today
  return from < end ? { from, to: end } : undefined
}

/** What the changes on the page compare, in words. */
export function comparison(span: Span): string {
  const days = comparable(span)
  if (!days) return 'nothing to compare before today is over'
  const count = (Date.parse(days.to) - Date.parse(days.from)) / DAY_MS
  const length = count === 1 ? 'the day' : `the ${count} days`
  const what = days.to === span.to ? length : count === 1 ? 'yesterday' : `${length} until yesterday`
  const others = {
    previous: `${length} before`,
    month: isMonth(days) ? 'the month before' : 'the same a month earlier',
    year: 'the same a year earlier',
  }
  const other = others[span.compare]
  return `changes compare ${what} with ${other}`
}

const isMonth = ({ from, to }: { from: string; to: string }) =>
  from.endsWith('-01') && to.endsWith('-01') && addDays(from, 31) >= to

/** The choice that a parameter names; undefined if it names none. */
const chosen = <T extends string>(query: URLSearchParams, name: string, choices: readonly T[]): T | undefined =>
  choices.find((one) => one === query.get(name))

/** The first of the month so many months before, so that months are whole. */
const monthsBefore = (day: string, months: number) => addMonths(`${addDays(day, -1).slice(0, 7)}-01`, 1 - months)

function grouping(from: string, to: string): Span['by'] {
  const days = (Date.parse(to) - Date.parse(from)) / DAY_MS
  return days <= 62 ? 'day' : days <= 200 ? 'week' : 'month'
}
