// The rate of calls to one account: charges come first, and look-ups use what they leave, with a small part reserved for each.
import { systemClock } from '../../lib/clock.ts'

/**
 * `charge`: the calls that make a charge or refund. `look_up`: those that find the outcome of one. `reading`: all others, such as
 * the look-ups that follow a notification, lists, and imports.
 */
export type Purpose = 'charge' | 'look_up' | 'reading'

// A burst may use the calls of this many milliseconds at once; further calls are spread evenly.
const BURST_MS = 250
// Of these, look-ups and readings leave so many to charges, so that a charge that comes during a burst of them does not wait.
const RESERVED_MS = 125
// While charges use up the whole rate, one of so many calls is a look-up or reading: an unknown outcome has to be found.
const FEWEST = 10

export class Rate {
  readonly #msPerCall: number
  /** The scheduled time of the last call. */
  #scheduledToMs = Number.NEGATIVE_INFINITY
  #lastReadingMs = Number.NEGATIVE_INFINITY
  readonly #waiting = { look_up: new Set<() => void>(), reading: new Set<() => void>() }
  #timer: NodeJS.Timeout | undefined

  constructor(maxPerSecond: number) {
    this.#msPerCall = 1000 / maxPerSecond
  }

  /** How long a charge that begins now would wait. */
  waitMs(): number {
    return this.#scheduledToMs - performance.now()
  }

  /** Resolves when the call may be sent, or when the signal aborts. */
  async take(purpose: Purpose, signal: AbortSignal): Promise<void> {
    if (purpose !== 'charge') return this.#queue(this.#waiting[purpose], signal)
    const nowMs = performance.now()
    this.#schedule(nowMs)
    const waitMs = this.#scheduledToMs - nowMs
    if (waitMs > 0) await systemClock.sleep(waitMs, signal)
  }

  #schedule(nowMs: number): void {
    this.#scheduledToMs = Math.max(this.#scheduledToMs, nowMs - BURST_MS) + this.#msPerCall
  }

  async #queue(waiting: Set<() => void>, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    await new Promise<void>((resolve) => {
      const leave = () => {
        waiting.delete(leave)
        signal.removeEventListener('abort', leave)
        resolve()
      }
      signal.addEventListener('abort', leave, { once: true })
      waiting.add(leave)
      this.#serve()
    })
  }

  /** Lets waiting calls go whose time has come, look-ups before readings, and wakes up for the next one. */
  #serve(): void {
    clearTimeout(this.#timer)
    for (;;) {
      const [next] = this.#waiting.look_up.size > 0 ? this.#waiting.look_up : this.#waiting.reading
      if (!next) return
      const nowMs = performance.now()
      const dueInMs = this.#dueMs(nowMs) - nowMs
      if (dueInMs > 0) {
        this.#timer = setTimeout(() => this.#serve(), Math.ceil(dueInMs))
        return
      }
      this.#lastReadingMs = nowMs
      this.#schedule(nowMs)
      next()
    }
  }

  /** When the next look-up or reading may be sent. */
  #dueMs(nowMs: number): number {
    const left = Math.max(this.#scheduledToMs, nowMs - BURST_MS) + this.#msPerCall + RESERVED_MS
    return Math.min(left, this.#lastReadingMs + FEWEST * this.#msPerCall)
  }
}
