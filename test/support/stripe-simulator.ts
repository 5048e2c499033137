// The simulator with Stripe's API on a ledger of its own, with the official client and the control interface.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Stripe } from 'stripe'
import { type StripeSimulatorOptions, startStripeSimulator } from '../../src/simulators/stripe/server.ts'
import { silent } from './simulator.ts'

export const TEST_KEY = 'sk_test_simulated0000'

export type StripeSimulator = Awaited<ReturnType<typeof openStripeSimulator>>

/** It can be stopped, and started again at the same address. */
export async function openStripeSimulator(more: Partial<StripeSimulatorOptions> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'tundish-stripe-'))
  const options = { ledgerFile: join(folder, 'ledger.ndjson'), log: silent, fsync: false, ...more }
  let running = await startStripeSimulator({ ...options, port: 0 })
  const { url } = running
  const control = async <T = Record<string, unknown>>(path: string, body?: object): Promise<T> => {
    const json = body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const response = await fetch(`${url}/_control${path}`, { method: 'POST', ...json })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return response.json() as Promise<T>
  }
  return {
    url,
    ledgerFile: options.ledgerFile,
    control,
    /** The official client, without its own retries. */
    client: (key = TEST_KEY) => stripeClient(url, key),
    /** The number of calls to the API so far. */
    calls: async () => ((await (await fetch(`${url}/_control/calls`)).json()) as { calls: number }).calls,
    ledger: async () => (await fetch(`${url}/_control/ledger`)).json() as Promise<StripeMovement[]>,
    stop: () => running.close(),
    start: async () => {
      running = await startStripeSimulator({ ...options, port: Number(new URL(url).port) })
    },
    cleanUp: async () => {
      await running.close()
      await rm(folder, { recursive: true })
    },
  }
}

export interface StripeMovement {
  type: 'charge' | 'refund'
  id: string
  amount: number
  currency: string
  metadata: Record<string, string>
  payment_intent?: string
  status?: string
}

export function stripeClient(url: string, key: string): Stripe {
  const { hostname, port } = new URL(url)
  return new Stripe(key, {
    host: hostname,
    port: Number(port),
    protocol: 'http',
    maxNetworkRetries: 0,
    telemetry: false,
  })
}

/** A customer with a card saved from a test token, as a shop's checkout leaves it. */
export async function savedCard(client: Stripe, token = 'pm_card_visa') {
  const customer = await client.customers.create({ email: 'grace@example.com', name: 'Grace' })
  const method = await client.paymentMethods.attach(token, { customer: customer.id })
  return { customer: customer.id, payment_method: method.id }
}
