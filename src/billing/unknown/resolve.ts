// Ends, by an operator's word, a charge or a refund that no provider can ever tell about.

import { Refusal } from '../../lib/errors.ts'
import type { Db } from '../../lib/pg/db.ts'
import { noDetails } from '../../providers/provider.ts'
import { minorFromDatabase } from '../amount.ts'
import { findOrder, type Order, take as takeOrder } from '../charge/orders.ts'
import { settle as settleCharge, type Verdict } from '../charge/settle.ts'
import type { BillingContext } from '../context.ts'
import { findRefund, type Refund, take as takeRefund } from '../refund/refunds.ts'
import { settle as settleRefund } from '../refund/settle.ts'
import { idsOf, lookIntoCharge, lookIntoRefund, orUnsettled } from './ask-provider.ts'
import { leaseMs } from './lease.ts'

export type Resolution = 'succeeded' | 'failed' | 'cancelled'

/** What is done with a charge and with a refund. */
interface Kind<T extends Order | Refund> {
  take(db: Db, found: T, leaseMs: number): Promise<T | undefined>
  look(context: BillingContext, taken: T): Promise<T>
  settle(db: Db, taken: T, verdict: Verdict, word: { because: string }): Promise<T>
}

const CHARGE: Kind<Order> = { take: takeOrder, look: lookIntoCharge, settle: settleCharge }
const REFUND: Kind<Refund> = { take: takeRefund, look: lookIntoRefund, settle: settleRefund }

interface Word {
  name: string
  as: Resolution
  because: string
}

type Found = { order: Order } | { refund: Refund }

/** The order or the refund of this id, of any organization. */
export async function findEither({ query }: Pick<Db, 'query'>, id: string): Promise<Found> {
  const order = await findOrder(query, id)
  if (order) return { order }
  const refund = await findRefund(query, id)
  if (refund) return { refund }
  throw new Refusal(`There is no order and no refund ${id}.`)
}

/** What an order or a refund is called in sentences. */
export function nameOf(found: Found): string {
  return 'order' in found ? `order ${found.order.order_id}` : `refund ${found.refund.refund_id}`
}

/**
 * Settles an order or a refund in progress as the operator says, and keeps the reason. The provider is asked once more:
 * when it can tell, it is settled by its word instead, and the operator's is refused.
 */
export async function resolve(context: BillingContext, found: Found, as: Resolution, because: string): Promise<Found> {
  const word = { name: nameOf(found), as, because }
  if ('order' in found) return { order: await resolveOne(context, CHARGE, found.order, word) }
  if (as === 'cancelled') throw new Refusal('A refund is never cancelled: it has succeeded or failed.')
  return { refund: await resolveOne(context, REFUND, found.refund, word) }
}

async function resolveOne<T extends Order | Refund>(
  context: BillingContext,
  kind: Kind<T>,
  found: T,
  { name, as, because }: Word,
): Promise<T> {
  const { db, log, providerTimeoutMs } = context
  if (found.status !== 'processing') throw new Refusal(`The ${name} is ${found.status} already.`)
  const taken = await kind.take(db, found, leaseMs(providerTimeoutMs, 2))
  if (!taken) throw new Refusal(`The ${name} is being made or settled at this moment: try again in a minute.`)
  const told = await orUnsettled(context, taken, () => kind.look(context, taken))
  if (told !== 'unsettled' && told.status !== 'processing')
    throw new Refusal(`The provider can tell: the ${name} is ${told.status} now.`)
  const resolved = await kind.settle(db, taken, verdictOf(taken, as), { because })
  log.warn({ ...idsOf(taken), as }, 'An operator resolved a charge or a refund.')
  return resolved
}

function verdictOf(one: Order | Refund, as: Resolution): Verdict {
  if (as === 'cancelled') return { outcome: 'refused' }
  const reference = 'refund_id' in one ? one.refund_id : one.order_id
  const amountMinor = minorFromDatabase(one.amount, one.currency_code)
  return { outcome: as, reference, amountMinor, currencyCode: one.currency_code, details: noDetails }
}
