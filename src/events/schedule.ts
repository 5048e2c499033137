// When a delivery that failed is tried again, and when it is given up.

const MINUTE = 60
const HOUR = 60 * MINUTE

/** Seconds from one failure to the next attempt: at first a restart's worth, at last a weekend's. */
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

// No receiver may put us off for longer than our own longest wait.
const LONGEST_WAIT_SECONDS = 24 * HOUR

/**
 * Seconds to wait after this many failures, the one at hand included; undefined when the schedule has ended. A receiver
 * may ask for more with `Retry-After`, not for less.
 */
export function waitAfter(failures: number, retryAfterSeconds = 0): number | undefined {
  const wait = WAITS_SECONDS[failures - 1]
  return wait === undefined ? undefined : Math.min(Math.max(wait, retryAfterSeconds), LONGEST_WAIT_SECONDS)
}

/** The seconds that a `Retry-After` header asks for, given as such or as a date; undefined when it says neither. */
export function readRetryAfter(header: string | undefined, nowSeconds: number): number | undefined {
  if (header === undefined) return undefined
  if (/^[0-9]{1,9}$/.test(header.trim())) return Number(header)
  // An HTTP date; anything looser would read a stray word as a year.
  if (!/^[A-Z][a-z]{2,8}, .* \d\d:\d\d:\d\d GMT$/.test(header.trim())) return undefined
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil(at / 1000) - nowSeconds)
}
