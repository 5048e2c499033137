// A circuit breaker: remembers that a provider keeps failing, so that no new charge is begun only to hang.
import type { Clock } from '../lib/clock.ts'

export interface CircuitLimits {
  /** This many failures in a row, with no success between them, open it. */
  failures: number
  /** ... if the first of them is not older than this. */
  windowMs: number
  /** So long nobody is let through; then one caller in each such rest, until a call succeeds. */
  restMs: number
  /** When nobody has come for so long after a rest, what it knows is too old to refuse anybody: it closes. */
  forgetMs: number
}

// A single bad connection pool or a deploy at the provider must not open it; a dead provider reaches 20 at once under
// load. Five seconds is what a client sleeps before its next try.
const defaults: CircuitLimits = { failures: 20, windowMs: 30_000, restMs: 5_000, forgetMs: 300_000 }

export class Circuit {
  readonly #clock: Clock
  readonly #limits: CircuitLimits
  #failures = 0
  #firstFailureAt = 0
  #restsUntil = Number.NEGATIVE_INFINITY

  constructor(clock: Clock, limits: Partial<CircuitLimits> = {}) {
    this.#clock = clock
    this.#limits = { ...defaults, ...limits }
  }

  isOpen(): boolean {
    return this.#clock.monotonicMs() < this.#restsUntil + this.#limits.forgetMs
  }

  /**
   * Whether a caller may go on. Of an open circuit it lets one through after each rest: its call is the trial. The next
   * rest begins there and then, whatever becomes of it: a caller may still turn back for reasons of its own, and calls
   * that go on failing meanwhile must not put the trial off for ever.
   */
  admits(): boolean {
    if (!this.isOpen()) return true
    if (this.#clock.monotonicMs() < this.#restsUntil) return false
    this.#rest()
    return true
  }

  succeeded(): void {
    this.#failures = 0
    this.#restsUntil = Number.NEGATIVE_INFINITY
  }

  failed(): void {
    const now = this.#clock.monotonicMs()
    if (this.#failures === 0 || now - this.#firstFailureAt > this.#limits.windowMs) {
      this.#failures = 0
      this.#firstFailureAt = now
    }
    this.#failures++
    if (!this.isOpen() && this.#failures >= this.#limits.failures) this.#rest()
  }

  #rest(): void {
    this.#restsUntil = this.#clock.monotonicMs() + this.#limits.restMs
  }
}
