// What every simulated provider's API has: calls with faults, work that becomes due, deliveries, keys that were revoked.
import { systemClock } from '../lib/clock.ts'
import { Deliveries, type Notice } from './deliveries.ts'
import type { JournaledState } from './journaled-state.ts'

export interface SimulatedResponse {
  status: number
  body: object
  isReplay?: boolean
}

/** `dropped`: the connection breaks without a response. */
export type Reply = SimulatedResponse | 'dropped'

/** Ends a call with this response. */
export class DialectError<Body extends object = object> extends Error {
  readonly status: number
  readonly body: Body

  constructor(status: number, body: Body, message: string) {
    super(message)
    this.status = status
    this.body = body
  }
}

export abstract class ProviderDialect<
  State extends JournaledState<object, string>,
  Asked extends { idempotencyKey: string | undefined },
  Target,
> {
  readonly state: State
  readonly deliveries: Deliveries<Target>
  readonly revoked = new Set<string>()
  /** The number of calls so far. */
  calls = 0
  /** The idempotency keys whose calls are still running. */
  protected readonly running = new Set<string>()
  readonly #closing = new AbortController()
  #timer: NodeJS.Timeout | undefined

  /** @param form forms and signs one attempt of a delivery; `wallClockMs` is the receiver's time, not the dialect's */
  constructor(state: State, form: (state: State, target: Target, wallClockMs: number) => Promise<Notice>) {
    this.state = state
    this.deliveries = new Deliveries((target) => form(state, target, state.wallClockMs()))
    this.#setTimer()
  }

  /** Runs one call without waiting for the disk. */
  protected abstract perform(asked: Asked): Promise<Reply>

  /** Runs a job that is due and is not a postponed call. */
  protected abstract runJob(task: Parameters<State['schedule']>[0], target: string): void

  /** Runs a call that was postponed. */
  protected abstract runLate(asked: Asked): void

  /** Runs one call. Its changes are on disk before the response. */
  async respond(asked: Asked): Promise<Reply> {
    this.calls += 1
    this.#runDueJobs()
    const reply = await this.perform(asked)
    this.#setTimer()
    await this.state.durable()
    return reply
  }

  /** Moves the dialect's clock, and runs each job that becomes due by then at its own time. */
  advance(ms: number): void {
    let leftMs = ms
    for (let due = this.state.nextDueInMs(); due !== undefined && due <= leftMs; due = this.state.nextDueInMs()) {
      this.state.advance(due)
      this.#runDueJobs()
      leftMs -= due
    }
    this.state.advance(leftMs)
    this.#runDueJobs()
    this.#setTimer()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    clearTimeout(this.#timer)
    await this.deliveries.close()
    await this.state.close()
  }

  /** Delays a call; its key is in use until then. */
  protected async delay(ms: number, key: string | undefined): Promise<void> {
    if (key) this.running.add(key)
    await systemClock.sleep(ms, this.#closing.signal)
    if (key) this.running.delete(key)
  }

  /** Drops the connection of a call, which runs later; its key is in use until then. */
  protected postpone(asked: Asked, ms: number, key: string | undefined): Reply {
    if (key) this.running.add(key)
    this.state.schedule('call', JSON.stringify(asked), ms)
    return 'dropped'
  }

  #runDueJobs(): void {
    for (const { task, target } of this.state.takeDue()) {
      if (task === 'call') this.#runLateCall(JSON.parse(target))
      else this.runJob(task, target)
    }
  }

  #runLateCall(asked: Asked): void {
    if (asked.idempotencyKey) this.running.delete(asked.idempotencyKey)
    try {
      this.runLate(asked)
    } catch (error) {
      // The connection of the caller is closed.
      if (!(error instanceof DialectError)) throw error
    }
  }

  /** One timer, for the job that is next by now. */
  #setTimer(): void {
    clearTimeout(this.#timer)
    const dueInMs = this.state.nextDueInMs()
    if (dueInMs === undefined || this.#closing.signal.aborted) return
    const run = () => {
      this.#runDueJobs()
      this.#setTimer()
    }
    this.#timer = setTimeout(run, Math.min(dueInMs, 2 ** 31 - 1))
  }
}
