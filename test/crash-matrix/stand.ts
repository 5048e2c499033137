// The providers of the crash matrix: each with an organization whose customers have cards there, and its ledger.
import type { Db } from '../../src/lib/pg/db.ts'
import { type Organization, startBilling } from '../support/billing.ts'
import { connectPrimer } from '../support/primer-billing.ts'
import { openPrimerSimulator } from '../support/simulators.ts'
import { startStripeBilling } from '../support/stripe-billing.ts'

export type ProviderName = 'simulator' | 'stripe' | 'primer'

export interface Stand {
  db: Db
  shop: Organization
  /** The environment of further processes. */
  env: Record<string, string>
  /** The id of a new customer with a card of this token. */
  customer(token: string, profileId?: string): Promise<string>
  /** The number of movements of money for an order or a refund. */
  movements(type: 'charge' | 'refund', id: string): Promise<number>
  /** A token that is charged without trouble. */
  goodCard: string
  /** Skips the minutes between two looks at a charge or refund that the provider does not know. */
  passTime(): Promise<void>
  stop(): Promise<void>
}

export async function openStand(provider: ProviderName, settings: Record<string, string>): Promise<Stand> {
  if (provider === 'primer') return openPrimer(settings)
  return provider === 'stripe' ? openStripe(settings) : openSimulator(settings)
}

async function openSimulator(settings: Record<string, string>): Promise<Stand> {
  const billing = await startBilling(settings)
  const shop = await billing.organization('matrix')
  return {
    db: billing.db,
    shop,
    env: billing.server.env,
    goodCard: 'pm_card_visa',
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
    goodCard: 'pm_card_visa',
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

async function openPrimer(settings: Record<string, string>): Promise<Stand> {
  const primer = await openPrimerSimulator()
  const billing = await startBilling({ PRIMER_API_URL: primer.url, ...settings })
  const shop = await billing.organization('matrix')
  const account = await connectPrimer(billing, shop, primer)
  return {
    db: billing.db,
    shop,
    env: billing.server.env,
    goodCard: 'tok_visa',
    customer: async (token, profileId) => (await account.customer(token, profileId)).user,
    async movements(type, id) {
      const [row] = await billing.db.query(KEY_OF, [id])
      return (await primer.ledger()).filter((movement) => movement.type === type && movement.key === row?.key).length
    },
    // Only what is older than a late request can be is waited out sooner than in minutes. On a busy machine a look-up may time out,
    // after which the next one would be minutes later, too.
    async passTime() {
      for (const table of ['orders', 'refunds'])
        await billing.db.query(
          `update ${table} set next_look_at = db_clock(),
             begun_at = case when coalesce(begun_at, created_at) > db_clock() - interval '5 minutes'
               then coalesce(begun_at, created_at) - interval '10 minutes' else begun_at end,
             not_found_at = case when not_found_at > db_clock() - interval '1 hour'
               then not_found_at - interval '1 hour' else not_found_at end
           where status = 'processing' and lease_until is null
             and coalesce(begun_at, created_at) < db_clock() - interval '10 seconds'
             and (coalesce(begun_at, created_at) > db_clock() - interval '5 minutes'
               or not_found_at > db_clock() - interval '1 hour' or next_look_at > db_clock() + interval '5 seconds')`,
        )
    },
    async stop() {
      await billing.stop()
      await primer.cleanUp()
    },
  }
}

const KEY_OF = `select provider_key as key from orders where order_id = $1
  union all select provider_key from refunds where refund_id = $1`
