// How long one process alone may work on a movement, and when an unknown outcome is checked again.

// A lease outlives the provider's deadline by this share of it, so that the claim's round trip before the call and settling
// after it fit in; never by less than a second, for a busy machine, and never by more than nine: a movement whose process was
// killed is checked within ten seconds after the deadline.
const MARGIN_SHARE = 4
const MIN_MARGIN_MS = 1_000
const MAX_MARGIN_MS = 9_000

/** The charge or refund itself is one call; a status check makes up to two, a look-up and a refusal. */
export type Calls = 1 | 2

export function leaseMs(deadlineMs: number, calls: Calls): number {
  return calls * deadlineMs + marginMs(deadlineMs)
}

/**
 * Whether a call that takes up to the deadline still ends within the lease. Measured on this process's own clock from
 * before the statement was sent that began the lease, so that the database's lease began later and ends later.
 */
export function leaseAllowsCall(deadlineMs: number, passedMs: number): boolean {
  return passedMs < marginMs(deadlineMs)
}

function marginMs(deadlineMs: number): number {
  return Math.min(Math.max(MIN_MARGIN_MS, deadlineMs / MARGIN_SHARE), MAX_MARGIN_MS)
}

// Most unknown outcomes are known a second later; a provider that is down for long is not asked more often than needed.
const PAUSES_S = [1, 5, 15, 60, 5 * 60, 15 * 60]

/** The pause, in seconds, before the next check after this many checks. */
export function pauseSeconds(checks: number): number {
  return PAUSES_S[Math.min(checks, PAUSES_S.length - 1)]!
}

/** Seconds between the two look-ups that must both find nothing where a provider cannot cancel. */
export const NEGATIVE_CHECKS_APART_S = 3 * 60

const HOUR_S = 3_600

/** The pause before the next check of an outcome that the provider decides later: an hour, six hours, then daily. */
export function pendingPauseSeconds(ageMs: number): number {
  const ageHours = ageMs / 1000 / HOUR_S
  return ageHours < 1 ? HOUR_S : ageHours < 7 ? 6 * HOUR_S : 24 * HOUR_S
}
