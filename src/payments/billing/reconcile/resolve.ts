// Ends, by an operator's decision, a charge or refund whose outcome the provider will never know.
import { Refusal } from '../../../lib/errors.ts'
import type { Db } from '../../../lib/pg/db.ts'
import { noDetails } from '../../providers/provider.ts'
import { minorFromDatabase } from '../amount.ts'
import type { Verdict } from '../charge/effects.ts'
import { type Order, ordersInProgress } from '../charge/row.ts'
import type { BillingContext } from '../context.ts'
import { CHARGE, idsOf, type Kind, look, orUnsettled, REFUND } from '../movement/check-status.ts'
import { leaseMs } from '../movement/lease.ts'
import { type Refund, refundsInProgress } from '../refund/row.ts'

export type Resolution = 'succeeded' | 'failed' | 'cancelled'

interface Decision {
  name: string
  as: Resolution
  because: string
}

type Found = { order: Order } | { refund: Refund }

/** The order or the refund of this id, of any organization. */
export async function findEither({ query }: Pick<Db, 'query'>, id: string): Promise<Found> {
  const order = await ordersInProgress.find(query, id)
  if (order) return { order }
  const refund = await refundsInProgress.find(query, id)
  if (refund) return { refund }
  throw new Refusal(`There is no order and no refund ${id}.`)
}

/** The name of an order or a refund in sentences. */
export function nameOf(found: Found): string {
  return 'order' in found ? `order ${found.order.order_id}` : `refund ${found.refund.refund_id}`
}

/**
 * Settles an order or a refund in progress as the operator says, and keeps the reason. The provider is asked once more:
 * if it knows the outcome, that is written, and the operator's decision is refused.
 */
export async function resolve(context: BillingContext, found: Found, as: Resolution, because: string): Promise<Found> {
  const decision = { name: nameOf(found), as, because }
  if ('order' in found) return { order: await resolveOne(context, CHARGE, found.order, decision) }
  if (as === 'cancelled') throw new Refusal('A refund is never cancelled: it has succeeded or failed.')
  return { refund: await resolveOne(context, REFUND, found.refund, decision) }
}

async function resolveOne<Row extends Order | Refund>(
  context: BillingContext,
  kind: Kind<Row>,
  found: Row,
  { name, as, because }: Decision,
): Promise<Row> {
  const { db, log, providerTimeoutMs } = context
  if (found.status !== 'processing') throw new Refusal(`The ${name} is ${found.status} already.`)
  const taken = await kind.rows.take(db, found, leaseMs(providerTimeoutMs, 2))
  if (!taken) throw new Refusal(`The ${name} is being made or settled at this moment: try again in a minute.`)
  const looked = await orUnsettled(context, taken, () => look(context, kind, taken))
  if (looked !== 'unsettled' && looked.status !== 'processing')
    throw new Refusal(`The provider knows the outcome: the ${name} is ${looked.status} now.`)
  const resolved = await kind.settle(context, undefined, taken, verdictOf(taken, as), { because })
  if (!('status' in resolved)) throw new Error('Bug: an operator decided on another charge')
  log.warn({ ...idsOf(taken), as }, 'An operator resolved a charge or a refund.')
  return resolved
}

function verdictOf(row: Order | Refund, as: Resolution): Verdict {
  if (as === 'cancelled') return { outcome: 'refused' }
  const [reference, psp_transaction_id] =
    'refund_id' in row ? [row.refund_id, row.provider_transaction_id] : [row.order_id, row.provider_handle]
  const amountMinor = minorFromDatabase(row.amount, row.currency_code)
  // By the provider's id, refunds and disputes that are made there later are found.
  const details = { ...noDetails, psp_transaction_id }
  return { outcome: as, reference, amountMinor, currencyCode: row.currency_code, details }
}
