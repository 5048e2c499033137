// How long a grant lasts: `90d` or `12h`, kept in hours.
import { ApiError } from '../../../lib/errors.ts'
import { instantFromMicros, microsFromInstant } from '../../../lib/time.ts'

// A hundred years.
const MAX_HOURS = 876_000

/** Hours of a text such as `90d` or `12h`; null: for good. Throws a 400, which names the `field`, for anything else. */
export function readExpiresAfter(text: string | null | undefined, field = 'expires_after'): number | null {
  if (text == null) return null
  const [, number, letter] = /^([1-9][0-9]{0,5})([dh])$/.exec(text) ?? []
  const hours = Number(number) * (letter === 'd' ? 24 : 1)
  if (number !== undefined && hours <= MAX_HOURS) return hours
  const sentence = `${field} must be a number of days or hours such as "90d" or "12h", at most a hundred years, got ${JSON.stringify(text)}.`
  throw new ApiError(400, 'invalid_property', sentence)
}

/** The instant so many hours later; null: never. */
export function expiryAfter(instant: string, hours: number | null): string | null {
  return hours === null ? null : instantFromMicros(microsFromInstant(instant) + BigInt(hours) * 3_600_000_000n)
}
