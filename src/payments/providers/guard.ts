// Limits the calls to one provider: a deadline for each call, a maximum of concurrent and of queued calls, an optional rate
// limit, and a circuit breaker.
import { type Clock, systemClock } from '../../lib/clock.ts'
import { rejectWhenAborted } from '../../lib/when-aborted.ts'
import { Circuit, type CircuitLimits } from './circuit.ts'
import type { NotBegun, Unknown } from './outcomes.ts'
import { NotPermitted, ProviderError } from './provider.ts'

export interface GuardOptions {
  /** For the circuit breaker. Deadlines use real time, because the connections do too. */
  clock: Clock
  /** The time for one call, including the wait for a free connection. */
  deadlineMs?: number
  maxInFlight?: number
  maxWaiting?: number
  /** The average number of calls a second; unlimited if omitted. */
  maxPerSecond?: number
  circuit?: Partial<CircuitLimits>
}

// 128 concurrent calls are 2,500 calls a second if the provider responds in 50 ms. A queue of 1,024 is then served in half
// a second, and takes little memory when the provider hangs.
export const defaultMaxInFlight = 128
const defaultMaxWaiting = 1_024
const defaultDeadlineMs = 30_000
// With a rate limit, a burst may use the calls of this many milliseconds at once; further calls are spread evenly.
const BURST_MS = 250
// No new charge begins while calls would wait longer than this for the rate limit.
const MAX_BEHIND_MS = 1_000

/** The call was abandoned here before its deadline, so it says nothing about the health of the provider. */
class Abandoned extends ProviderError {}

/** The call was abandoned before it was sent. */
class NeverSent extends Abandoned {}

export class Guard {
  readonly circuit: Circuit
  readonly deadlineMs: number
  readonly #maxInFlight: number
  readonly #maxWaiting: number
  readonly #waiting = new Set<() => void>()
  readonly #msPerCall: number
  #inFlight = 0
  /** The scheduled time of the last call, with a rate limit. */
  #scheduledToMs = Number.NEGATIVE_INFINITY

  constructor(options: GuardOptions) {
    this.circuit = new Circuit(options.clock, options.circuit)
    this.deadlineMs = options.deadlineMs ?? defaultDeadlineMs
    this.#maxInFlight = options.maxInFlight ?? defaultMaxInFlight
    this.#maxWaiting = options.maxWaiting ?? defaultMaxWaiting
    this.#msPerCall = options.maxPerSecond === undefined ? 0 : 1000 / options.maxPerSecond
  }

  admits(): boolean {
    const isBehind = this.#scheduledToMs - performance.now() > MAX_BEHIND_MS
    return !isBehind && this.#waiting.size < this.#maxWaiting && this.circuit.admits()
  }

  /**
   * Runs one call. A `ProviderError` becomes the outcome `unknown`; any other exception is a bug and is rethrown. Only
   * calls that move money count for the circuit breaker: a provider may respond to look-ups while charges hang, and the
   * reverse.
   */
  async run<T>(
    call: (signal: AbortSignal) => Promise<T>,
    outer?: AbortSignal,
    { moves = true } = {},
  ): Promise<T | Unknown> {
    try {
      return await this.#attempt(call, moves, outer)
    } catch (error) {
      return asUnknown(error)
    }
  }

  /**
   * Runs the call that begins a charge or a refund. The outcome is `not_begun` if the call was not sent because too many
   * others are queued.
   */
  async begin<T>(call: (signal: AbortSignal) => Promise<T>, outer?: AbortSignal): Promise<T | Unknown | NotBegun> {
    try {
      return await this.#attempt(call, true, outer)
    } catch (error) {
      if (error instanceof NeverSent) return { outcome: 'not_begun', why: error.message, cause: 'busy' }
      return asUnknown(error)
    }
  }

  async #attempt<T>(call: (signal: AbortSignal) => Promise<T>, moves: boolean, outer?: AbortSignal): Promise<T> {
    const abort = new AbortController()
    const timer = setTimeout(
      () => abort.abort(new ProviderError(`no answer within ${this.deadlineMs} ms`)),
      this.deadlineMs,
    )
    const abandon = () => abort.abort(new Abandoned('the call was given up'))
    if (outer?.aborted) abandon()
    outer?.addEventListener('abort', abandon, { once: true })
    try {
      if (this.#msPerCall > 0) await this.#keepRate(abort.signal)
      await this.#enter(abort.signal)
      return await this.#untilAborted(call, abort.signal, moves)
    } finally {
      clearTimeout(timer)
      outer?.removeEventListener('abort', abandon)
    }
  }

  /** Runs the call and records its outcome in the circuit breaker. The race also ends a call that ignores its signal. */
  async #untilAborted<T>(call: (signal: AbortSignal) => Promise<T>, signal: AbortSignal, moves: boolean): Promise<T> {
    try {
      const outcome = await Promise.race([call(signal), rejectWhenAborted(signal)])
      if (moves) this.circuit.succeeded()
      return outcome
    } catch (error) {
      if (moves && error instanceof ProviderError && !(error instanceof Abandoned)) this.circuit.failed()
      throw error
    } finally {
      this.#leave()
    }
  }

  async #keepRate(signal: AbortSignal): Promise<void> {
    const now = performance.now()
    this.#scheduledToMs = Math.max(this.#scheduledToMs, now - BURST_MS) + this.#msPerCall
    const waitMs = this.#scheduledToMs - now
    if (waitMs > 0) await systemClock.sleep(waitMs, signal)
    if (signal.aborted) throw new NeverSent('not sent: the rate of the account did not allow it in time')
  }

  /** Takes a slot for a concurrent call, or waits for one. A freed slot goes to the call that has waited longest. */
  async #enter(signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw new NeverSent('the call was given up')
    if (this.#inFlight < this.#maxInFlight) {
      this.#inFlight++
      return
    }
    if (this.#waiting.size >= this.#maxWaiting) throw new NeverSent('not sent: too many calls are waiting')
    await new Promise<void>((resolve, reject) => {
      const turn = () => {
        this.#waiting.delete(turn)
        signal.removeEventListener('abort', quit)
        resolve()
      }
      const quit = () => {
        this.#waiting.delete(turn)
        reject(new NeverSent('not sent: no connection became free in time'))
      }
      signal.addEventListener('abort', quit, { once: true })
      this.#waiting.add(turn)
    })
  }

  #leave(): void {
    const [next] = this.#waiting
    if (next) next()
    else this.#inFlight--
  }
}

function asUnknown(error: unknown): Unknown {
  if (error instanceof NotPermitted)
    return { outcome: 'unknown', why: error.message, missingPermission: error.permission }
  if (error instanceof ProviderError) return { outcome: 'unknown', why: error.message }
  throw error
}
