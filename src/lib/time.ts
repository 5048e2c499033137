// Date-times to the microsecond as text: read from RFC 3339 and from PostgreSQL, always in one canonical form.
import { DAY_MS } from './days.ts'

/**
 * The message is the phrase after the field's name:
 * `created_at` + ` has more than 6 fraction digits`.
 */
export class TimeError extends Error {}

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/
const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/**
 * Reads an RFC 3339 date-time with any offset into the canonical form, `2026-01-31T23:59:59.123456Z`: UTC, six fraction
 * digits, so that the order of the texts is the order of time. Throws a `TimeError` for anything else, for more than six
 * fraction digits (nothing is rounded), and for years outside 0001 to 9999 in UTC.
 *
 * A leap second (RFC 3339, section 5.7) is at the end of a month in UTC, and is read as the second that follows.
 */
export function readInstant(text: string): string {
  const match = RFC_3339.exec(text)
  if (!match) throw new TimeError(`must be an RFC 3339 date-time such as ${exampleFor(text)}`)
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHour, offsetMinute] = match as string[]
  if (fraction.length > 6) throw new TimeError('has more than 6 fraction digits')
  refuseImpossible(Number(year), Number(month), Number(day))
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60)
    throw new TimeError('has an impossible time of day')
  if (Number(offsetHour ?? 0) > 23 || Number(offsetMinute ?? 0) > 59) throw new TimeError('has an impossible offset')

  const micros = fraction.padEnd(6, '0')
  const offset = (Number(offsetHour ?? 0) * 60 + Number(offsetMinute ?? 0)) * (sign === '-' ? -1 : 1)
  if (offset === 0 && second !== '60' && year !== '0000') return `${text.slice(0, 10)}T${text.slice(11, 19)}.${micros}Z`

  const lastSecond = second === '60' ? '59' : second
  const local = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${lastSecond}Z`)
  const millis = local - offset * 60_000 + (second === '60' ? 1000 : 0)
  const utc = new Date(millis)
  if (second === '60' && !startsMonth(utc)) throw new TimeError('has second 60, but does not end a month in UTC')
  if (utc.getUTCFullYear() < 1 || utc.getUTCFullYear() > 9999) throw new TimeError(OUT_OF_RANGE)
  return `${utc.toISOString().slice(0, 19)}.${micros}Z`
}

/** Reads a date-time from a query string, where an unencoded `+` has become a space. */
export function readQueryInstant(text: string): string {
  return readInstant(text.replace(/ (?=\d\d:\d\d$)/, '+'))
}

/** Turns a `timestamptz` as PostgreSQL writes it in UTC (`2026-01-31 23:59:59.1+00`) into the canonical form. */
export function instantFromPg(text: string): string {
  const rest = REST_BY_LENGTH[text.length]
  if (rest === undefined || text.charCodeAt(10) !== 0x20 || !text.endsWith('+00')) {
    throw new Error(`Bug: the database wrote the time "${text}"`)
  }
  return `${text.slice(0, 10)}T${text.slice(11, -3)}${rest}`
}

/** Microseconds since 1970 of a date-time in the canonical form. */
export function microsFromInstant(instant: string): bigint {
  return BigInt(Date.parse(`${instant.slice(0, 23)}Z`)) * 1000n + BigInt(instant.slice(23, 26))
}

/** The canonical form of microseconds since 1970. */
export function instantFromMicros(micros: bigint): string {
  const part = ((micros % 1000n) + 1000n) % 1000n
  const millis = Number((micros - part) / 1000n)
  if (!isInRange(micros)) throw new TimeError(OUT_OF_RANGE)
  return `${new Date(millis).toISOString().slice(0, 23)}${String(part).padStart(3, '0')}Z`
}

/** Whether `instantFromMicros` can represent it. */
export function isInRange(micros: bigint): boolean {
  return micros >= FIRST_MICRO && micros <= LAST_MICRO
}

/** Microseconds since 1970 of a `timestamptz` as PostgreSQL writes it in UTC. */
export function microsFromPg(text: string): bigint {
  return microsFromInstant(instantFromPg(text))
}

const OUT_OF_RANGE = 'is outside the years 0001 to 9999'
const FIRST_MICRO = BigInt(Date.parse('0001-01-01T00:00:00.000Z')) * 1000n
const LAST_MICRO = BigInt(Date.parse('9999-12-31T23:59:59.999Z')) * 1000n + 999n

// PostgreSQL drops trailing zeros of the fraction; the length shows how many. No other length is a time between the years
// 1 and 9999.
const REST_BY_LENGTH: Record<number, string> = {
  22: '.000000Z',
  24: '00000Z',
  25: '0000Z',
  26: '000Z',
  27: '00Z',
  28: '0Z',
  29: 'Z',
}

function refuseImpossible(year: number, month: number, day: number): void {
  const leapYear = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
  const days = month === 2 && leapYear ? 29 : DAYS[month - 1]
  if (days === undefined || day < 1 || day > days) throw new TimeError('has an impossible date')
}

function startsMonth(utc: Date): boolean {
  return utc.getUTCDate() === 1 && utc.getTime() % DAY_MS === 0
}

/** For a day, the instant at which it begins. */
function exampleFor(text: string): string {
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text) ?? []
  if (day === undefined) return '2026-01-31T23:59:59Z'
  refuseImpossible(Number(year), Number(month), Number(day))
  return `${text}T00:00:00Z`
}
