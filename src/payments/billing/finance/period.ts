// The days of a finance report: a month, or a first and a last day.
import { addDays, addMonths, readDay, readMonth } from '../../../lib/days.ts'
import { invalidParameter } from '../../../lib/errors.ts'

/** `to` is the last day, which is included. */
export interface Period {
  from: string
  to: string
}

export interface PeriodGiven {
  month?: string
  from?: string
  to?: string
}

const MAX_MONTHS = 36

/** What the caller calls the parts of a period, for sentences. */
type PeriodNames = Record<keyof PeriodGiven, string>
const PARAMETERS: PeriodNames = { month: 'month', from: 'from', to: 'to' }

/** Reads a month, or a first and a last day. Throws a 400 whose sentence has these names. */
export function readPeriod({ month, from, to }: PeriodGiven, names = PARAMETERS): Period {
  if (month !== undefined && from === undefined && to === undefined) return monthPeriod(readMonth(names.month, month))
  if (month !== undefined || from === undefined || to === undefined)
    throw invalidParameter(`Give ${names.month}, or ${names.from} and ${names.to}.`)
  const period = { from: readDay(names.from, from), to: readDay(names.to, to) }
  if (period.from > period.to)
    throw invalidParameter(`${names.from} must not be after ${names.to}, got ${from} and ${to}.`)
  if (period.to >= addMonths(period.from, MAX_MONTHS))
    throw invalidParameter(`${names.from} and ${names.to} must be at most ${MAX_MONTHS} months apart.`)
  return period
}

/** The month that begins on this day. */
export const monthPeriod = (first: string): Period => ({ from: first, to: addDays(addMonths(first, 1), -1) })
