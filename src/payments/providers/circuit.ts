// A circuit breaker: refuses new charges while a provider keeps failing, so that they do not hang.
import type { Clock } from '../../lib/clock.ts'

export interface CircuitLimits {
  /** The number of consecutive failures that opens the circuit. */
  failures: number
  /** The failures must all fall within this period. */
  windowMs: number
  /** How long an open circuit refuses all callers. After that it admits one trial per period, until a call succeeds. */
  restMs: number
  /** Without a caller for this long after a period of refusal, the circuit closes, because its state is outdated. */
  forgetMs: number
}

// A few bad connections or a deploy at the provider must not open it; an unreachable provider causes 20 failures at once
// under load. Five seconds is the usual pause of a client before its next try.
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
   * Whether a caller may proceed. An open circuit admits one caller as a trial after each period of refusal. The next
   * period begins at once, whatever the outcome of the trial: the caller may still be refused for another reason, and calls
   * that began earlier and fail now must not postpone the next trial again and again.
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
