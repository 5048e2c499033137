// The simulator with Stripe's API on its own ledger, with the official client and the control interface.
import { Stripe } from 'stripe'
import { type StripeSimulatorOptions, startStripeSimulator } from '../../src/simulators/stripe/server.ts'
import { openDialectSimulator } from './dialect-simulator.ts'

export const TEST_KEY = 'sk_test_simulated0000'

export type StripeSimulator = Awaited<ReturnType<typeof openStripeSimulator>>

export async function openStripeSimulator(more: Partial<StripeSimulatorOptions> = {}) {
  const simulator = await openDialectSimulator<StripeMovement>('stripe', (given) =>
    startStripeSimulator({ ...given, ...more, port: given.port }),
  )
  return {
    ...simulator,
    /** The official client, without its own retries. */
    client: (key = TEST_KEY) => stripeClient(simulator.url, key),
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
