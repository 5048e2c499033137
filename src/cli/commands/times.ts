// Reads durations and date-times of the command line.
import { DAY_S } from '../../lib/days.ts'
import { UsageError } from '../../lib/errors.ts'
import { shorten } from '../../lib/text.ts'
import { readInstant, TimeError } from '../../lib/time.ts'

const UNIT_SECONDS: Record<string, number> = { s: 1, m: 60, h: 3600, d: DAY_S }
const LONGEST_SECONDS = 365 * DAY_S

/** `24h`, `90m`, `7d` or `0s` in seconds, at most a year. */
export function readDuration(option: string, text: string): number {
  const [, digits, unit] = /^([0-9]{1,8})([smhd])$/.exec(text) ?? []
  const seconds = Number(digits) * (UNIT_SECONDS[unit ?? ''] ?? Number.NaN)
  if (seconds <= LONGEST_SECONDS) return seconds
  throw new UsageError(`${option} must be a duration of at most a year such as 24h, 90m or 7d, got "${text}".`)
}

/** A date-time in the canonical form. */
export function readTime(option: string, text: string): string {
  try {
    return readInstant(text)
  } catch (error) {
    if (!(error instanceof TimeError)) throw error
    throw new UsageError(`${option} ${error.message}, got "${shorten(text, 64)}".`)
  }
}
