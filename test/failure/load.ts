// Clients that send requests without pause: reads of a project and charges of customers, with a record of each response and charge.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Organization } from '../support/billing.ts'
import type { ApiResponse, Json, TestServer } from '../support/server.ts'

export interface Received {
  /** The number of responses by status; `hung` took too long, `broken` had no response. */
  statuses: Record<string, number>
  slowestMs: number
  /** The faults of responses that were neither a success nor a well-formed 503. */
  wrong: string[]
  /** When the last failed response arrived, and the first success after it. */
  lastTroubleMs: number
  /** Every charge that was sent: customer and key. */
  charges: { customer: string; key: string; amount: string }[]
}

export interface Load {
  received: Received
  /** From now on each client waits a moment after every response: enough to notice the last failure, for a part of the CPU. */
  calm(): void
  stop(): Promise<Received>
}

const PATIENCE_MS = 20_000
const CALM_MS = 50

/** Sends requests until it is stopped, from this many readers and chargers. */
export function startLoad(server: TestServer, shop: Organization, customers: string[], readers = 4): Load {
  const received: Received = { statuses: {}, slowestMs: 0, wrong: [], lastTroubleMs: 0, charges: [] }
  let pauseMs = 0
  let stopping = false

  async function call(send: () => Promise<ApiResponse>): Promise<{ status: number | string; body?: Json }> {
    const begunMs = performance.now()
    const response = await Promise.race([
      send().catch((error: Error) => ({
        status: 'broken',
        text: error.message,
        headers: {} as Record<string, string>,
      })),
      sleep(PATIENCE_MS, { status: 'hung', text: '', headers: {} as Record<string, string> }, { ref: false }),
    ])
    const { status, text, headers } = response
    received.statuses[status] = (received.statuses[status] ?? 0) + 1
    received.slowestMs = Math.max(received.slowestMs, performance.now() - begunMs)
    if (status !== 200) {
      received.lastTroubleMs = performance.now()
      const clean = status === 503 && /^[1-9][0-9]*$/.test(String(headers['retry-after'] ?? ''))
      if (!clean) received.wrong.push(`${status} ${text.slice(0, 200)}`)
      await sleep(20)
    } else if (pauseMs > 0) await sleep(pauseMs)
    return response
  }

  async function read(): Promise<void> {
    const paths = ['/subscriptions', '/funnels', '/profiles?filter[updated_at.from]=2020-01-01T00:00:00Z']
    for (let n = 0; !stopping; n++) {
      await call(() => server.api(paths[n % paths.length]!, { key: shop.projectKey }))
      await sleep(2)
    }
  }

  /** Makes one purchase after another, and repeats each with its key until it has a final response, as the guide says. */
  async function charge(customer: string): Promise<void> {
    while (!stopping) {
      const one = { customer, key: randomUUID(), amount: '1.00' }
      received.charges.push(one)
      const body = { amount: one.amount, idempotency_key: one.key }
      for (;;) {
        const { status, body: charged } = await call(() => shop.charge(customer, body))
        if (stopping || (status === 200 && charged.checkout_status !== 'processing')) break
        if (status === 200) await sleep(50)
      }
    }
  }

  const working = [...Array.from({ length: readers }, read), ...customers.map(charge)]
  return {
    received,
    calm() {
      pauseMs = CALM_MS
    },
    async stop() {
      stopping = true
      await Promise.all(working)
      return received
    },
  }
}
