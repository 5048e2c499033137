// The providers of the crash matrix: each with an organization whose customers have cards there, and its ledger.
import type { Db } from '../../src/lib/pg/db.ts'
import { type Organization, startBilling } from '../support/billing.ts'
import { startStripeBilling } from '../support/stripe-billing.ts'

export type ProviderName = 'simulator' | 'stripe'

export interface Stand {
  db: Db
  shop: Organization
  /** The environment of further processes. */
  env: Record<string, string>
  /** The id of a new customer with a card of this token. */
  customer(token: string, profileId?: string): Promise<string>
  /** The number of movements of money for an order or a refund. */
  movements(type: 'charge' | 'refund', id: string): Promise<number>
  /** Skips the minutes between two looks at a refund that the provider does not know. */
  passTime(): Promise<void>
  stop(): Promise<void>
}

export async function openStand(provider: ProviderName, settings: Record<string, string>): Promise<Stand> {
  return provider === 'stripe' ? openStripe(settings) : openSimulator(settings)
}

async function openSimulator(settings: Record<string, string>): Promise<Stand> {
  const billing = await startBilling(settings)
  const shop = await billing.organization('matrix')
  return {
    db: billing.db,
    shop,
    env: billing.server.env,
    customer: (token, profileId) => shop.customer({ token, ...(profileId && { profileId }) }),
    movements: async (type, id) => (await billing.ledger(id)).filter((movement) => movement.type === type).length,
    async passTime() {},
    stop: billing.stop,
  }
}

async function openStripe(settings: Record<string, string>): Promise<Stand> {
  const billing = await startStripeBilling(settings)
  const shop = await billing.shop('matrix')
  return {
    db: billing.db,
    shop,
    env: billing.server.env,
    customer: async (token, profileId) => (await shop.customerWithCard(token, profileId)).external_id,
    async movements(type, id) {
      const name = type === 'charge' ? 'tundish_order' : 'tundish_refund'
      const movements = await billing.stripe.ledger()
      return movements.filter((movement) => movement.type === type && movement.metadata[name] === id).length
    },
    async passTime() {
      await billing.db.query(
        `update refunds set not_found_at = not_found_at - interval '1 hour', next_look_at = db_clock()
         where status = 'processing' and not_found_at > db_clock() - interval '1 hour' and lease_until is null`,
      )
    },
    stop: billing.stop,
  }
}
