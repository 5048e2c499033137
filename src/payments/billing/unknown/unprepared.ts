// Asks for the outcome of an order for which no prepared payment was stored.
import { instantFromPg } from '../../../lib/time.ts'
import type { Pending, Prepared, Refused, Settled, Unknown } from '../../providers/outcomes.ts'
import type { Card, Provider } from '../../providers/provider.ts'
import { type Order, reference } from '../charge/orders.ts'
import type { BillingContext } from '../context.ts'
import { cardsOf } from '../saved-card.ts'
import { noted } from './provider-calls.ts'

/**
 * A payment is confirmed only after its handle was stored, so an order without a handle was never charged, unless the database has
 * lost the handle: a backup may be older than it, and a failover may have lost its commit a moment ago, before this is noticed.
 * Therefore the provider is asked for the key. An order that it does not know is cancelled, for no process waits for it any more.
 */
export async function askForUnprepared(
  { db, ...context }: BillingContext,
  provider: Provider,
  order: Order,
  signal?: AbortSignal,
): Promise<Settled | Refused | Pending | Prepared | Unknown> {
  if (!provider.findByKey) return { outcome: 'refused' }
  const { organization_id, order_id } = order
  const [row] = await db.query<{ since: string; is_restored: 't' | 'f' }>(SINCE, [organization_id, order_id])
  const { since, is_restored } = row!
  const find = (cards: Card[]) =>
    noted({ db, ...context }, order, 'find_by_key', () =>
      provider.findByKey!({ ...reference(order), cards }, instantFromPg(since), signal),
    )
  let found = await find(await cardsOf(db.query, order))
  // The backup may lack the payment that saved the card, too: then the whole account is searched.
  if (found.outcome === 'not_found' && is_restored === 't') found = await find([])
  return found.outcome === 'not_found' ? { outcome: 'refused' } : found
}

// The key may have been charged before the order was made, by one that a restored backup has forgotten. Clocks may differ by some
// minutes, and a charge may have been under way when the backup was made: hence the hour.
const SINCE = {
  name: 'find since when key may be charged',
  text: `select least(o.created_at, g.restored_from) - interval '1 hour' as since, g.restored_from is not null as is_restored
         from orders o join organizations g on g.id = o.organization_id where o.organization_id = $1 and o.order_id = $2`,
}
