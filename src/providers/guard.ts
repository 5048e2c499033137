// Stands before every call to a provider: one deadline, a bounded number at a time, a bounded queue, the circuit.
import { type Clock, systemClock } from '../lib/clock.ts'
import { Circuit, type CircuitLimits } from './circuit.ts'
import { type NotBegun, ProviderTrouble, type Unknown } from './provider.ts'

/** The clock is the circuit's; the deadline is real time, as the connections are. */
export interface GuardOptions {
  clock: Clock
  /** From asking to the answer, waiting for a free connection included. */
  deadlineMs?: number
  maxInFlight?: number
  maxWaiting?: number
  /** Calls a second, on average; left out: as many as come. */
  maxPerSecond?: number
  circuit?: Partial<CircuitLimits>
}

// 128 at a time carry 2,500 calls a second to a provider that takes 50 ms; 1,024 waiting are served in half a second
// then, and cost little memory when it hangs.
export const defaultMaxInFlight = 128
const defaultMaxWaiting = 1_024
const defaultDeadlineMs = 30_000
// With a rate, calls are spread evenly behind a burst of this long, and no new charge is begun when they would wait longer.
const BURST_MS = 250
const MOST_BEHIND_MS = 1_000

/** We gave up before the provider had its chance: no sign of its health. */
class OwnTrouble extends ProviderTrouble {}

/** We gave up while the call was still waiting here. */
class NeverSent extends OwnTrouble {}

export class Guard {
  readonly circuit: Circuit
  readonly deadlineMs: number
  readonly #maxInFlight: number
  readonly #maxWaiting: number
  readonly #waiting = new Set<() => void>()
  readonly #msPerCall: number
  #inFlight = 0
  /** When the calls so far are spread out to. */
  #spreadToMs = Number.NEGATIVE_INFINITY

  constructor(options: GuardOptions) {
    this.circuit = new Circuit(options.clock, options.circuit)
    this.deadlineMs = options.deadlineMs ?? defaultDeadlineMs
    this.#maxInFlight = options.maxInFlight ?? defaultMaxInFlight
    this.#maxWaiting = options.maxWaiting ?? defaultMaxWaiting
    this.#msPerCall = options.maxPerSecond === undefined ? 0 : 1000 / options.maxPerSecond
  }

  admits(): boolean {
    const isBehind = this.#spreadToMs - performance.now() > MOST_BEHIND_MS
    return !isBehind && this.#waiting.size < this.#maxWaiting && this.circuit.admits()
  }

  /**
   * Runs one call; `ProviderTrouble` becomes `unknown`, any other exception is a bug and passes. Only calls that `move`
   * money tell the circuit how the provider is: one that answers look-ups may leave charges hanging, and the other way
   * round.
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
   * Runs the call that begins a charge or a refund. One that was not sent, because too many others wait here, is
   * `not_begun`.
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
      () => abort.abort(new ProviderTrouble(`no answer within ${this.deadlineMs} ms`)),
      this.deadlineMs,
    )
    const giveUp = () => abort.abort(new OwnTrouble('the call was given up'))
    if (outer?.aborted) giveUp()
    outer?.addEventListener('abort', giveUp, { once: true })
    try {
      if (this.#msPerCall > 0) await this.#keepRate(abort.signal)
      await this.#enter(abort.signal)
      return await this.#underWatch(call, abort.signal, moves)
    } finally {
      clearTimeout(timer)
      outer?.removeEventListener('abort', giveUp)
    }
  }

  /** The race ends a call that does not listen to its signal, too. */
  async #underWatch<T>(call: (signal: AbortSignal) => Promise<T>, signal: AbortSignal, moves: boolean): Promise<T> {
    try {
      const answer = await Promise.race([call(signal), aborted(signal)])
      if (moves) this.circuit.succeeded()
      return answer
    } catch (error) {
      if (moves && error instanceof ProviderTrouble && !(error instanceof OwnTrouble)) this.circuit.failed()
      throw error
    } finally {
      this.#leave()
    }
  }

  async #keepRate(signal: AbortSignal): Promise<void> {
    const now = performance.now()
    this.#spreadToMs = Math.max(this.#spreadToMs, now - BURST_MS) + this.#msPerCall
    const waitMs = this.#spreadToMs - now
    if (waitMs > 0) await systemClock.sleep(waitMs, signal)
    if (signal.aborted) throw new NeverSent('not sent: the rate of the account did not allow it in time')
  }

  /** Takes a place, or waits in line for one; the place of who leaves goes to the first in line. */
  async #enter(signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw signal.reason
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
  if (error instanceof ProviderTrouble) return { outcome: 'unknown', why: error.message }
  throw error
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
