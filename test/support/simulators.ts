// The providers' simulators, each with its own ledger; they can be stopped, and restarted at the same address.
import { join } from 'node:path'
import pino from 'pino'
import { Stripe } from 'stripe'
import { type PrimerSimulatorOptions, startPrimerSimulator } from '../../src/simulators/primer/server.ts'
import type { Simulator, SimulatorOptions } from '../../src/simulators/run.ts'
import { startSimulator } from '../../src/simulators/server.ts'
import { type StripeSimulatorOptions, startStripeSimulator } from '../../src/simulators/stripe/server.ts'
import { freePort } from './cli.ts'
import { temporaryFolder } from './folder.ts'

export const silent = pino({ level: 'silent' })
export const PRIMER_KEY = 'simulated-primer-key-0001'
export const TEST_KEY = 'sk_test_simulated0000'

export type PrimerSimulator = Awaited<ReturnType<typeof openPrimerSimulator>>
export type StripeSimulator = Awaited<ReturnType<typeof openStripeSimulator>>

interface StripeMovement {
  type: 'charge' | 'refund'
  id: string
  amount: number
  currency: string
  metadata: Record<string, string>
  payment_intent?: string
  status?: string
}

interface PrimerMovement {
  type: 'charge' | 'refund'
  payment: string
  key: string
  amount: number
  currencyCode: string
  metadata: Record<string, string>
}

export const openSimulator = () => open(startSimulator)

/** The simulator with Stripe's API. */
export async function openStripeSimulator(more: Partial<StripeSimulatorOptions> = {}) {
  const simulator = await open((given) => startStripeSimulator({ ...given, ...more }))
  return {
    ...simulator,
    ...controlled<StripeMovement>(simulator.url),
    /** The official client, without its own retries. */
    client: (key = TEST_KEY) => stripeClient(simulator.url, key),
  }
}

/** The simulator with Primer's API. */
export async function openPrimerSimulator(more: Partial<PrimerSimulatorOptions> = {}) {
  const simulator = await open((given) => startPrimerSimulator({ ...given, ...more }))
  return {
    ...simulator,
    ...controlled<PrimerMovement>(simulator.url),
    /** Calls the API as the adapter does. */
    call: async (method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
      const type = body && { 'content-type': 'application/json' }
      const own = { 'x-api-key': PRIMER_KEY, 'x-api-version': '2.4', ...type, ...headers }
      const sent = { method, headers: own, ...(body && { body: JSON.stringify(body) }) }
      const response = await fetch(simulator.url + path, sent)
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    },
  }
}

/** The ledger is not synced to disk, because in tests it has to survive only the end of the process. */
async function open(begin: (given: SimulatorOptions & { fsync: boolean }) => Promise<Simulator>) {
  const ledgerFile = join(temporaryFolder(), 'ledger.ndjson')
  const start = (port: number) => begin({ ledgerFile, port, log: silent, fsync: false })
  // For a restart: a port that the system gave out may be taken by then.
  let running = await start(await freePort())
  const { url } = running
  return {
    url,
    ledgerFile,
    stop: () => running.close(),
    start: async () => {
      running = await start(Number(new URL(url).port))
    },
    cleanUp: () => running.close(),
  }
}

/** The control interface of a simulator with a provider's API. */
function controlled<Movement>(url: string) {
  return {
    async control<T = Record<string, unknown>>(path: string, body?: object): Promise<T> {
      const json = body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
      const response = await fetch(`${url}/_control${path}`, { method: 'POST', ...json })
      if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
      return response.json() as Promise<T>
    },
    /** The number of calls to the API so far. */
    calls: async () => ((await (await fetch(`${url}/_control/calls`)).json()) as { calls: number }).calls,
    ledger: async () => (await fetch(`${url}/_control/ledger`)).json() as Promise<Movement[]>,
  }
}

export function stripeClient(url: string, key: string): Stripe {
  const { hostname: host, port } = new URL(url)
  return new Stripe(key, { host, port: Number(port), protocol: 'http', maxNetworkRetries: 0, telemetry: false })
}

/** A customer with a card saved from a test token, as a shop's checkout leaves it. */
export async function savedCard(client: Stripe, token = 'pm_card_visa') {
  const customer = await client.customers.create({ email: 'grace@example.com', name: 'Grace' })
  const method = await client.paymentMethods.attach(token, { customer: customer.id })
  return { customer: customer.id, payment_method: method.id }
}
