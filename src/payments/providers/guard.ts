// Limits the calls to one provider: a deadline for each call, a maximum of concurrent and of queued calls, an optional rate
// limit, and a circuit breaker. Charges come before all other calls.
import type { Clock } from '../../lib/clock.ts'
import { rejectWhenAborted } from '../../lib/when-aborted.ts'
import { Circuit, type CircuitLimits } from './circuit.ts'
import { isAborted, startDeadline } from './deadline.ts'
import type { NotBegun, Unknown } from './outcomes.ts'
import { errorOf, NotPermitted, ProviderError } from './provider.ts'
import { type Purpose, Rate } from './rate.ts'
import { repeatUnknown } from './repeat.ts'

export interface GuardOptions {
  /** For the circuit breaker, and for deadlines that pass while the machine sleeps. Timers use real time, because the connections do too. */
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
// No new charge begins while calls would wait longer than this for the rate limit.
const MAX_BEHIND_MS = 1_000

/** The call was abandoned here before its deadline, so it says nothing about the health of the provider. */
class Abandoned extends ProviderError {}

/** The call was abandoned before it was sent. */
class NeverSent extends Abandoned {}

export class Guard {
  readonly circuit: Circuit
  readonly deadlineMs: number
  readonly #clock: Clock
  readonly #maxInFlight: number
  readonly #maxWaiting: number
  readonly #charges = new Set<() => void>()
  readonly #others = new Set<() => void>()
  readonly #rate: Rate | undefined
  #inFlight = 0
  #othersInFlight = 0

  constructor(options: GuardOptions) {
    this.#clock = options.clock
    this.circuit = new Circuit(options.clock, options.circuit)
    this.deadlineMs = options.deadlineMs ?? defaultDeadlineMs
    this.#maxInFlight = options.maxInFlight ?? defaultMaxInFlight
    this.#maxWaiting = options.maxWaiting ?? defaultMaxWaiting
    this.#rate = options.maxPerSecond === undefined ? undefined : new Rate(options.maxPerSecond)
  }

  admits(): boolean {
    const isBehind = this.#rate !== undefined && this.#rate.waitMs() > MAX_BEHIND_MS
    return !isBehind && this.#charges.size < this.#maxWaiting && this.circuit.admits()
  }

  /**
   * Runs one call. A `ProviderError` becomes the outcome `unknown`; any other exception is a bug and is rethrown. Only
   * calls that move money count for the circuit breaker: a provider may respond to look-ups while charges hang, and the
   * reverse.
   */
  async run<T>(
    call: (signal: AbortSignal) => Promise<T>,
    outer?: AbortSignal,
    { moves = true, purpose = moves ? 'charge' : 'look_up' }: { moves?: boolean; purpose?: Purpose } = {},
  ): Promise<T | Unknown> {
    try {
      return await this.#attempt(call, purpose, outer)
    } catch (error) {
      return asUnknown(error)
    }
  }

  /**
   * Runs the call that begins a charge or a refund. The outcome is `not_begun` if the call was not sent because too many
   * others are queued, or if it failed with an error for which `causeOf` has a cause.
   */
  async begin<T>(
    call: (signal: AbortSignal) => Promise<T>,
    outer?: AbortSignal,
    causeOf: (error: ProviderError) => NotBegun['cause'] | undefined = () => undefined,
  ): Promise<T | Unknown | NotBegun> {
    try {
      return await this.#attempt(call, 'charge', outer)
    } catch (error) {
      if (error instanceof NeverSent) return { outcome: 'not_begun', why: error.message, cause: 'busy' }
      const cause = error instanceof ProviderError ? causeOf(error) : undefined
      if (cause) return { outcome: 'not_begun', why: (error as ProviderError).message, cause }
      return asUnknown(error)
    }
  }

  /** Runs a call that moves no money, so its failures do not open the circuit, and which lets charges go first. */
  read<T>(call: (signal: AbortSignal) => Promise<T>, outer?: AbortSignal): Promise<T | Unknown> {
    return this.run(call, outer, { purpose: 'reading' })
  }

  /** Reads a part of a list for which no caller waits: a call that fails is repeated a few times. Throws a `ProviderError`. */
  async list<T extends object>(call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const part = await repeatUnknown(this.#clock, () => this.read(call))
    if ('outcome' in part) throw errorOf(part)
    return part
  }

  /** The same as `read` for a call that finds the outcome of a charge or refund. */
  find<T>(call: (signal: AbortSignal) => Promise<T>, outer?: AbortSignal): Promise<T | Unknown> {
    return this.run(call, outer, { purpose: 'look_up' })
  }

  /** Resolves when a call that is made outside of the guard may be sent, or when the signal aborts. */
  async takeTurn(signal: AbortSignal): Promise<void> {
    await this.#rate?.take('reading', signal)
  }

  async #attempt<T>(call: (signal: AbortSignal) => Promise<T>, purpose: Purpose, outer?: AbortSignal): Promise<T> {
    const abort = new AbortController()
    const stopDeadline = startDeadline(this.#clock, abort.signal, this.deadlineMs, () =>
      abort.abort(new ProviderError(`no response within ${this.deadlineMs} ms`)),
    )
    const abandon = () => abort.abort(new Abandoned('the call was given up'))
    if (outer?.aborted) abandon()
    outer?.addEventListener('abort', abandon, { once: true })
    try {
      if (this.#rate) await keepRate(this.#rate, purpose, abort.signal)
      await this.#enter(abort.signal, purpose)
      return await this.#untilAborted(call, abort.signal, purpose)
    } finally {
      stopDeadline()
      outer?.removeEventListener('abort', abandon)
    }
  }

  /** Runs the call and records its outcome in the circuit breaker. The race also ends a call that ignores its signal. */
  async #untilAborted<T>(call: (signal: AbortSignal) => Promise<T>, signal: AbortSignal, purpose: Purpose): Promise<T> {
    const moves = purpose === 'charge'
    try {
      if (isAborted(signal)) throw new NeverSent('not sent: the deadline has passed')
      const outcome = await Promise.race([call(signal), rejectWhenAborted(signal)])
      if (moves) this.circuit.succeeded()
      return outcome
    } catch (error) {
      if (moves && error instanceof ProviderError && !(error instanceof Abandoned)) this.circuit.failed()
      throw error
    } finally {
      this.#leave(purpose)
    }
  }

  /** Takes a slot for a concurrent call, or waits for one. A freed slot goes to the charge that has waited longest, else to another call. */
  async #enter(signal: AbortSignal, purpose: Purpose): Promise<void> {
    if (signal.aborted) throw new NeverSent('the call was given up')
    if (this.#hasRoom(purpose)) return this.#occupy(purpose)
    const waiting = purpose === 'charge' ? this.#charges : this.#others
    if (waiting.size >= this.#maxWaiting) throw new NeverSent('not sent: too many calls are waiting')
    await new Promise<void>((resolve, reject) => {
      const turn = () => {
        waiting.delete(turn)
        signal.removeEventListener('abort', quit)
        this.#occupy(purpose)
        resolve()
      }
      const quit = () => {
        waiting.delete(turn)
        reject(new NeverSent('not sent: no connection became free in time'))
      }
      signal.addEventListener('abort', quit, { once: true })
      waiting.add(turn)
    })
  }

  /** Other calls than charges take at most half of the slots, so that slow ones leave room for charges. */
  #hasRoom(purpose: Purpose): boolean {
    const isFree = this.#inFlight < this.#maxInFlight
    return isFree && (purpose === 'charge' || this.#othersInFlight < Math.ceil(this.#maxInFlight / 2))
  }

  #occupy(purpose: Purpose): void {
    this.#inFlight++
    if (purpose !== 'charge') this.#othersInFlight++
  }

  #leave(purpose: Purpose): void {
    this.#inFlight--
    if (purpose !== 'charge') this.#othersInFlight--
    const [charge] = this.#charges
    const [other] = this.#others
    if (charge && this.#hasRoom('charge')) charge()
    else if (other && this.#hasRoom('reading')) other()
  }
}

async function keepRate(rate: Rate, purpose: Purpose, signal: AbortSignal): Promise<void> {
  await rate.take(purpose, signal)
  if (signal.aborted) throw new NeverSent('not sent: the rate of the account did not allow it in time')
}

function asUnknown(error: unknown): Unknown {
  if (error instanceof NotPermitted)
    return { outcome: 'unknown', why: error.message, missingPermission: error.permission }
  if (error instanceof ProviderError) return { outcome: 'unknown', why: error.message }
  throw error
}
