// The length of a day, and days in UTC as texts such as 2026-10-31.
import { invalidParameter } from './errors.ts'
import { shorten } from './text.ts'

export const DAY_S = 86_400
export const DAY_MS = 86_400_000

/** The day this many days later; a text with a time becomes a day. Throws a `RangeError` for a text that is not a date. */
export const addDays = (day: string, days: number) =>
  new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10)

/** Whether the text is a day of the calendar. */
export const isDay = (text: string): boolean =>
  /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text)) && addDays(text, 0) === text

/** The same day this many months later; a day that the month has not becomes one of the month after it. */
export const addMonths = (day: string, months: number): string =>
  new Date(monthsAfter(Date.parse(`${day}T00:00:00Z`), months)).toISOString().slice(0, 10)

/** The same of a time in milliseconds. */
export function monthsAfter(ms: number, months: number): number {
  const date = new Date(ms)
  return date.setUTCMonth(date.getUTCMonth() + months)
}

// Adding ten years of days to these, or taking a year away, still gives a year of four digits.
export const FIRST_DAY = '1900-01-01'
const LAST_DAY = '2999-12-31'

/** Reads a day from a query parameter, or throws a 400 that names the parameter. */
export const readDay = (name: string, text: string) => readDate(name, text, 'day')

/** Reads a month, such as 2026-01, by the rule of days; returns its first day. */
export const readMonth = (name: string, text: string) => readDate(name, text, 'month')

function readDate(name: string, text: string, unit: 'day' | 'month'): string {
  const day = unit === 'month' ? `${text}-01` : text
  const written = (date: string) => (unit === 'month' ? date.slice(0, 7) : date)
  if (!isDay(day))
    throw invalidParameter(`${name} must be a ${unit} such as ${written('2026-01-31')}, got "${shorten(text, 20)}".`)
  if (day < FIRST_DAY || day > LAST_DAY) {
    const bounds = `from ${written(FIRST_DAY)} to ${written(LAST_DAY)}`
    throw invalidParameter(`${name} must be ${bounds}, got ${text}.`)
  }
  return day
}

/** The hour of a day, from 0 to 24, as a clock shows it: `09:00`. */
export const clockOf = (hour: number): string => `${String(hour).padStart(2, '0')}:00`

/** A day as `26 Oct 2026`, or as `26 Oct` if it is in the year of `today`. Both begin like `2026-10-26`. */
export function dateOf(day: string, today?: string): string {
  const [year, month, date] = [day.slice(0, 4), MONTHS[Number(day.slice(5, 7)) - 1], Number(day.slice(8, 10))]
  return today?.startsWith(year) ? `${date} ${month}` : `${date} ${month} ${year}`
}

/** A month as `Oct 2026`. */
export const monthOf = (day: string): string => `${MONTHS[Number(day.slice(5, 7)) - 1]} ${day.slice(0, 4)}`

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
