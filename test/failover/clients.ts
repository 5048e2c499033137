// Clients during the kills: charges repeated with their key until they are decided, reads, and a copy by windows.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Copy, startCopy } from './copy.ts'

export interface Shop {
  url: string
  organizationId: string
  billingKey: string
  projectKey: string
  customers: string[]
}

/** A charge as a client knows it; `outcome` is what it was told at last. */
export interface Charged {
  customer: string
  key: string
  orderId: string | undefined
  outcome: string | undefined
  decidedMs: number | undefined
}

export interface Clients {
  charges: Charged[]
  /** Responses by request and status, of a 400 also its code; `broken` had none. */
  statuses: Map<string, number>
  /** Charges that were refused because another one of the customer is in progress. */
  inProgress: { customer: string; key: string; sentAt: Date; receivedAt: Date }[]
  copy: Copy
  /** The longest time without a charge that succeeded, in this span. */
  outageMs(fromMs: number, toMs: number): number
  /** Ends the load; every charge is asked for until it is decided, and the copy goes on until it has read what is there. */
  stop(): Promise<void>
}

const PATIENCE_MS = 30_000

export function startClients(shop: Shop): Clients {
  const clients: Omit<Clients, 'outageMs' | 'stop'> = {
    charges: [],
    statuses: new Map(),
    inProgress: [],
    copy: startCopy((path, signal) => get('copy', path, signal)),
  }
  let stopping = false

  async function call(what: string, path: string, init: RequestInit): Promise<Response | undefined> {
    const signal = init.signal ?? AbortSignal.timeout(PATIENCE_MS)
    const response = await fetch(`${shop.url}${path}`, { ...init, signal }).catch(() => undefined)
    const code = response?.status === 400 ? ` ${response.headers.get('x-error-code')}` : ''
    const name = `${what} ${response?.status ?? 'broken'}${code}`
    clients.statuses.set(name, (clients.statuses.get(name) ?? 0) + 1)
    if (response?.status !== 200) await sleep(100)
    return response
  }

  async function ask(charge: Charged): Promise<void> {
    const sentAt = new Date()
    const body = { external_id: charge.customer, amount: '1.00', currency_code: 'USD', idempotency_key: charge.key }
    const response = await call('charge', `/${shop.organizationId}/v1/payment/one_off_charge`, {
      method: 'POST',
      headers: { 'Service-Secret-Key': shop.billingKey, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (response?.headers.get('x-error-code') === 'charge_in_progress')
      clients.inProgress.push({ customer: charge.customer, key: charge.key, sentAt, receivedAt: new Date() })
    if (response?.status !== 200) return
    const { order_id, checkout_status } = (await response.json()) as { order_id: string; checkout_status: string }
    if (checkout_status === 'processing') return void (await sleep(50))
    Object.assign(charge, { orderId: order_id, outcome: checkout_status, decidedMs: performance.now() })
  }

  async function charge(customer: string): Promise<void> {
    while (!stopping) {
      const one: Charged = { customer, key: randomUUID(), orderId: undefined, outcome: undefined, decidedMs: undefined }
      clients.charges.push(one)
      while (one.outcome === undefined) await ask(one)
      await sleep(20)
    }
  }

  const get = (what: string, path: string, signal?: AbortSignal) =>
    call(what, path, { headers: { 'Service-Secret': shop.projectKey }, ...(signal && { signal }) })

  async function read(): Promise<void> {
    while (!stopping) {
      await get('read', '/public/v1/transactions?limit=20')
      await sleep(20)
    }
  }

  async function copy(): Promise<void> {
    while (!stopping) {
      await clients.copy.window()
      await sleep(200)
    }
  }

  const working = [...shop.customers.map(charge), read(), read(), copy()]
  return Object.assign(clients, {
    outageMs(fromMs: number, toMs: number) {
      const times = clients.charges.flatMap(({ decidedMs }) => decidedMs ?? []).filter((at) => at > fromMs && at < toMs)
      const all = [fromMs, ...times.sort((a, b) => a - b), toMs]
      return Math.max(...all.slice(1).map((at, n) => at - all[n]!))
    },
    async stop() {
      stopping = true
      await Promise.all(working)
      // The horizon lags by up to a second, and a first window may tell that the copy is void.
      for (let windows = 0; windows < 6; windows += 1) {
        await sleep(1100)
        while (!(await clients.copy.window())) await sleep(100)
      }
    },
  })
}
