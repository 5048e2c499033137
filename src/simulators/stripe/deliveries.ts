// Sends events to webhook endpoints; on request twice, late, out of order or never.
import type { Stripe } from 'stripe'
import { secretsOf, signature } from './events.ts'
import type { Objects, State } from './state.ts'

export interface DeliveryMode {
  copies: number
  delayMs: number
  /** Each delivery waits another part of `delayMs`, so that events overtake each other. */
  shuffled: boolean
  isOff: boolean
}

export interface DeliveryOptions {
  state: State
  sleep(ms: number, signal: AbortSignal): Promise<void>
  /** Seconds for the signature: the receiver's time, not the dialect's. */
  wallClockMs(): number
  send?: typeof fetch
}

// Stripe tries for three days; a test must not. A receiver that restarts is available again within a minute.
const RETRIES_MS = [100, 500, 1_000, 5_000, 15_000, 60_000]
const TIMEOUT_MS = 10_000

export class Deliveries {
  mode: DeliveryMode = { copies: 1, delayMs: 0, shuffled: false, isOff: false }
  readonly #options: DeliveryOptions
  readonly #closing = new AbortController()
  readonly #running = new Set<Promise<void>>()

  constructor(options: DeliveryOptions) {
    this.#options = options
  }

  add(event: Stripe.Event, endpoints: readonly Objects['webhook_endpoint'][]): void {
    if (this.mode.isOff) return
    for (const endpoint of endpoints) {
      for (let copy = 0; copy < this.mode.copies; copy++) {
        const running = this.#deliver(event, endpoint, this.mode).finally(() => this.#running.delete(running))
        this.#running.add(running)
      }
    }
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all(this.#running)
  }

  async #deliver(event: Stripe.Event, endpoint: Objects['webhook_endpoint'], mode: DeliveryMode): Promise<void> {
    const { signal } = this.#closing
    await this.#options.sleep(mode.shuffled ? Math.random() * mode.delayMs : mode.delayMs, signal)
    for (const pause of [...RETRIES_MS, undefined]) {
      if (signal.aborted || (await this.#send(event, endpoint))) return
      if (pause !== undefined) await this.#options.sleep(pause, signal)
    }
  }

  /** @returns whether the endpoint took it */
  async #send(event: Stripe.Event, { id, url }: Objects['webhook_endpoint']): Promise<boolean> {
    const { state, wallClockMs, send = fetch } = this.#options
    // The receiver may read the object at once, so it must be on disk before the event is sent.
    await state.durable()
    const body = JSON.stringify(event, null, 2)
    // Its secret may have been rolled since the event was made.
    const secrets = secretsOf(state.find('webhook_endpoint', id)!, state.now())
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'stripe-signature': signature(body, secrets, Math.floor(wallClockMs() / 1000)),
    }
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(TIMEOUT_MS)])
    try {
      const answer = await send(url, { method: 'POST', headers, body, signal, redirect: 'manual' })
      await answer.arrayBuffer()
      return answer.ok
    } catch {
      return false
    }
  }
}
