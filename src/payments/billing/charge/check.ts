// How the outcome of a charge is found at the provider, and the charge refused or settled.
import { instantFromPg } from '../../../lib/time.ts'
import type { Pending, Prepared, Refused, Settled, Unknown } from '../../providers/outcomes.ts'
import type { Provider } from '../../providers/provider.ts'
import type { BillingContext } from '../context.ts'
import { askThenRefuse } from '../movement/check-status.ts'
import type { Checked } from '../movement/kind-of-movement.ts'
import { noted } from '../movement/provider-calls.ts'
import { isUnlisted } from '../movement/unlisted.ts'
import type { TakeOver } from './adopt.ts'
import { chargeRequest, type Order, ordersInProgress, reference } from './row.ts'
import { cardsOf } from './saved-card.ts'
import { settleByVerdict } from './verdict.ts'

/** @param takeOver takes over the refunds and disputes of a charge that is adopted */
export function chargeChecks(takeOver: TakeOver): Checked<Order> {
  const checks: Checked<Order> = {
    type: 'charge',
    rows: ordersInProgress,
    idsOf: ({ order_id }) => ({ order_id }),
    lookUp: (provider, order, signal) => provider.lookUp(reference(order), signal),
    replay: (provider, order, signal) => provider.charge!(chargeRequest(order, undefined), signal),
    ask: (context, provider, order, signal) =>
      provider.traits.prepares && order.provider_handle === null
        ? askForUnprepared(context, provider, order, signal)
        : askThenRefuse(context, checks, provider, order, provider.traits.refuse === 'wait_out', signal),
    refuse: (context, provider, order, signal) =>
      noted(context, order, 'refuse', () => provider.refuse(reference(order), signal)),
    seen: (order, { handle = null }) => ({ ...order, provider_handle: order.provider_handle ?? handle }),
    capture: (context, provider, order, handle) =>
      noted(context, order, 'capture', () => provider.capture!({ ...reference(order), handle })),
    settle: (context, provider, order, verdict, how) =>
      settleByVerdict(context, takeOver, provider, order, verdict, how),
  }
  return checks
}

/**
 * A payment is confirmed only after its handle was stored, so an order without a handle was never charged, unless the database has
 * lost the handle: a backup may be older than it, and a failover may have lost its commit a moment ago, before this is noticed.
 * Therefore the provider is asked for the key, and as long as the account has to be listed after a restore, nothing is concluded
 * from what is not found: the list may have it. An order that the provider does not know is cancelled, for no process waits for it.
 */
async function askForUnprepared(
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
