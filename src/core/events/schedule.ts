// When a failed delivery is tried again, and when it is given up.

const MINUTE = 60
const HOUR = 60 * MINUTE

/** Seconds from a failure to the next attempt. The first ones cover a restart of the receiver, the last ones a weekend. */
export const WAITS_SECONDS: readonly number[] = [
  5,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
]

// A receiver cannot postpone a delivery for longer than the longest pause of the schedule.
const LONGEST_WAIT_SECONDS = 24 * HOUR

/**
 * Seconds to wait after this many failures, the latest included; undefined at the end of the schedule. `Retry-After` can
 * make the pause longer, not shorter.
 */
export function waitAfter(failures: number, retryAfterSeconds = 0): number | undefined {
  const wait = WAITS_SECONDS[failures - 1]
  return wait === undefined ? undefined : Math.min(Math.max(wait, retryAfterSeconds), LONGEST_WAIT_SECONDS)
}

/** The seconds of a `Retry-After` header, which is a number or an HTTP date; undefined for anything else. */
export function readRetryAfter(header: string | undefined, nowSeconds: number): number | undefined {
  if (header === undefined) return undefined
  if (/^[0-9]{1,9}$/.test(header.trim())) return Number(header)
  // Only HTTP dates: `Date.parse` alone would read a stray word as a year.
  if (!/^[A-Z][a-z]{2,8}, .* \d\d:\d\d:\d\d GMT$/.test(header.trim())) return undefined
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil(at / 1000) - nowSeconds)
}
