// The clock for waits and deadlines: real in the program, virtual in a simulation. Stamps come from the database.
import { setTimeout as wait } from 'node:timers/promises'

export interface Clock {
  /** Milliseconds that only grow, also while the machine sleeps, from an arbitrary zero. */
  monotonicMs(): number
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

// More than the rounding of the wall clock, and less than the margin of any lease.
const LEAST_JUMP_MS = 100
// Longer than any lease, and short enough for durations to stay plausible when a clock that was wrong by years is corrected.
const LONGEST_JUMP_MS = 60 * 60_000

let jumpsMs = 0
let wallAheadMs = Date.now() - performance.now()

/**
 * `performance.now()` stands still while the machine sleeps or its virtual machine is paused, but leases in the database run out. So
 * the time by which the wall clock jumps ahead is added. A wall clock that is set back changes nothing.
 */
function monotonicMs(): number {
  const nowMs = performance.now()
  const aheadMs = Date.now() - nowMs
  const jumpMs = aheadMs - wallAheadMs
  if (jumpMs > LEAST_JUMP_MS) jumpsMs += Math.min(jumpMs, LONGEST_JUMP_MS)
  if (jumpMs > LEAST_JUMP_MS || jumpMs < 0) wallAheadMs = aheadMs
  return nowMs + jumpsMs
}

export const systemClock: Clock = {
  monotonicMs,
  sleep: (ms, signal) =>
    wait(ms, undefined, { signal }).catch((error) => {
      if (error.name !== 'AbortError') throw error
    }),
}
