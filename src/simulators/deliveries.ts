// Sends notifications to webhook endpoints; on request twice, late, out of order or never.
import { systemClock } from '../lib/clock.ts'

export interface DeliveryMode {
  copies: number
  delayMs: number
  /** Each delivery waits another part of `delayMs`, so that notifications overtake each other. */
  shuffled: boolean
  isOff: boolean
}

export interface Notice {
  url: string
  headers: Record<string, string>
  body: string
}

// Providers try for longer; a test must not. A receiver that restarts is available again within a minute.
const RETRIES_MS = [100, 500, 1_000, 5_000, 15_000, 60_000]
const TIMEOUT_MS = 10_000

export class Deliveries<Target> {
  mode: DeliveryMode = { copies: 1, delayMs: 0, shuffled: false, isOff: false }
  readonly #form: (target: Target) => Promise<Notice>
  readonly #closing = new AbortController()
  readonly #running = new Set<Promise<void>>()

  /** @param form forms and signs one attempt, when what the receiver may read at once is on disk */
  constructor(form: (target: Target) => Promise<Notice>) {
    this.#form = form
  }

  add(target: Target): void {
    if (this.mode.isOff) return
    for (let copy = 0; copy < this.mode.copies; copy++) {
      const running = this.#deliver(target, this.mode).finally(() => this.#running.delete(running))
      this.#running.add(running)
    }
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all(this.#running)
  }

  async #deliver(target: Target, mode: DeliveryMode): Promise<void> {
    const { signal } = this.#closing
    await systemClock.sleep(mode.shuffled ? Math.random() * mode.delayMs : mode.delayMs, signal)
    for (const pause of [...RETRIES_MS, undefined]) {
      if (signal.aborted || (await this.#send(target))) return
      if (pause !== undefined) await systemClock.sleep(pause, signal)
    }
  }

  /** @returns whether the endpoint took it */
  async #send(target: Target): Promise<boolean> {
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(TIMEOUT_MS)])
    try {
      // It fails while the journal cannot be written.
      const { url, headers, body } = await this.#form(target)
      const response = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'manual' })
      await response.arrayBuffer()
      return response.ok
    } catch {
      return false
    }
  }
}
