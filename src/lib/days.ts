// The length of a day, and days in UTC as texts such as 2026-10-31.
import { ApiError } from './errors.ts'
import { shorten } from './text.ts'

export const DAY_S = 86_400
export const DAY_MS = 86_400_000

/** The day so many days later; a text with a time becomes a day. Throws a `RangeError` for what is no date. */
export const addDays = (day: string, days: number) =>
  new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10)

// Adding ten years of days to these, or taking a year away, still gives a year of four digits.
export const FIRST_DAY = '1900-01-01'
const LAST_DAY = '2999-12-31'

/** Reads a day from a query parameter, or throws a 400 that names the parameter. */
export function readDay(name: string, text: string): string {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || Number.isNaN(Date.parse(text)) || addDays(text, 0) !== text)
    throw new ApiError(
      400,
      'invalid_parameter',
      `${name} must be a day such as 2026-01-31, got "${shorten(text, 20)}".`,
    )
  if (text < FIRST_DAY || text > LAST_DAY)
    throw new ApiError(400, 'invalid_parameter', `${name} must be from ${FIRST_DAY} to ${LAST_DAY}, got ${text}.`)
  return text
}
