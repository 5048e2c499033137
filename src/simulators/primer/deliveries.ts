// Sends webhooks; on request twice, late, out of order or never.
import { createHmac } from 'node:crypto'
import type { State } from './state.ts'

export interface DeliveryMode {
  copies: number
  delayMs: number
  /** Each delivery waits a part of `delayMs` of its own, so that webhooks overtake each other. */
  shuffled: boolean
  isOff: boolean
}

export interface DeliveryOptions {
  state: State
  sleep(ms: number, signal: AbortSignal): Promise<void>
  /** Seconds for the signature: the receiver's time, not the dialect's. */
  wallClockMs(): number
}

// Primer tries three times more, five seconds apart; a receiver that restarts is available again within a minute.
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

  add(event: object): void {
    if (this.mode.isOff || !this.#options.state.endpoint) return
    for (let copy = 0; copy < this.mode.copies; copy++) {
      const running = this.#deliver(event, this.mode).finally(() => this.#running.delete(running))
      this.#running.add(running)
    }
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all(this.#running)
  }

  async #deliver(event: object, mode: DeliveryMode): Promise<void> {
    const { signal } = this.#closing
    await this.#options.sleep(mode.shuffled ? Math.random() * mode.delayMs : mode.delayMs, signal)
    for (const pause of [...RETRIES_MS, undefined]) {
      if (signal.aborted || (await this.#send(event))) return
      if (pause !== undefined) await this.#options.sleep(pause, signal)
    }
  }

  /** @returns whether the endpoint took it */
  async #send(event: object): Promise<boolean> {
    const { state, wallClockMs } = this.#options
    // The receiver may read the payment at once, so it must be on disk before.
    await state.durable()
    const { url, secret, rotated } = state.endpoint!
    const body = JSON.stringify({ ...event, signedAt: String(Math.floor(wallClockMs() / 1000)) })
    const isRotating = rotated !== undefined && rotated.until_ms > state.nowMs()
    const headers = {
      'content-type': 'application/json',
      'x-signature-primary': signature(body, secret),
      ...(isRotating && { 'x-signature-secondary': signature(body, rotated.secret) }),
    }
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(TIMEOUT_MS)])
    try {
      const answer = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'manual' })
      await answer.arrayBuffer()
      return answer.ok
    } catch {
      return false
    }
  }
}

const signature = (body: string, secret: string) => createHmac('sha256', secret).update(body).digest('base64')
