// Asks for the outcome of an order for which no prepared payment was stored.
import { instantFromPg } from '../../../lib/time.ts'
import type { Pending, Prepared, Refused, Settled, Unknown } from '../../providers/outcomes.ts'
import type { Provider } from '../../providers/provider.ts'
import type { BillingContext } from '../context.ts'
import { noted } from '../movement/provider-calls.ts'
import { isUnlisted } from '../movement/unlisted.ts'
import { type Order, reference } from './row.ts'
import { cardsOf } from './saved-card.ts'

/**
 * A payment is confirmed only after its handle was stored, so an order without a handle was never charged, unless the database has
 * lost the handle: a backup may be older than it, and a failover may have lost its commit a moment ago, before this is noticed.
 * Therefore the provider is asked for the key, and as long as the account has to be listed after a restore, nothing is concluded
 * from what is not found: the list may have it. An order that the provider does not know is cancelled, for no process waits for it.
 */
export async function askForUnprepared(
  { db, ...context }: BillingContext,
  provider: Provider,
  order: Order,
  signal?: AbortSignal,
): Promise<Settled | Refused | Pending | Prepared | Unknown> {
  if (!provider.findByKey) return { outcome: 'refused' }
  const { organization_id, order_id } = order
  const [row] = await db.query<Record<'since' | 'until', string>>(PREPARED_WITHIN, [organization_id, order_id])
  const span = { since: instantFromPg(row!.since), until: instantFromPg(row!.until) }
  const cards = await cardsOf(db.query, order)
  const found = await noted({ db, ...context }, order, 'find_by_key', () =>
    provider.findByKey!({ ...reference(order), cards }, span, signal),
  )
  if (found.outcome !== 'not_found') return found
  if (await isUnlisted(db.query, order)) return { outcome: 'unknown', why: 'the account has to be listed first' }
  return { outcome: 'refused' }
}

// Clocks may differ by some minutes, and a lease, within which the payment is prepared, is shorter than ten. A longer span could hold
// more payments of the account than can be read within one deadline.
const PREPARED_WITHIN = {
  name: 'find span of prepared payment',
  text: `select created_at - interval '5 minutes' as since,
           coalesce(begun_at, created_at) + interval '15 minutes' as until
         from orders where organization_id = $1 and order_id = $2`,
}
