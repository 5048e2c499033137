// Ends, by an operator's word, a charge that no provider can ever tell about.
import { isUnavailable } from '../lib/db.ts'
import { Refusal } from '../lib/errors.ts'
import { noDetails } from '../providers/provider.ts'
import { minorFromDatabase } from './amount.ts'
import { settle, type Verdict } from './charge-settlement.ts'
import { findOrder, type Order, take } from './charges.ts'
import type { BillingContext } from './context.ts'
import { leaseMs } from './lease.ts'
import { lookIntoCharge } from './looks.ts'

export type Resolution = 'succeeded' | 'failed' | 'cancelled'

/**
 * Settles an order in progress as the operator says, and keeps the reason. The provider is asked once more: when it can
 * tell, the order is settled by its word instead, and the operator's is refused.
 */
export async function resolve(
  context: BillingContext,
  orderId: string,
  as: Resolution,
  because: string,
): Promise<Order> {
  const { db, log, providerTimeoutMs } = context
  const order = await findOrder(db.query, orderId)
  if (!order) throw new Refusal(`There is no order ${orderId}.`)
  if (order.status !== 'processing') throw new Refusal(`The order ${orderId} is ${order.status} already.`)
  const taken = await take(db, order, leaseMs(providerTimeoutMs, 2))
  if (!taken)
    throw new Refusal(`The order ${orderId} is being charged or settled at this moment: try again in a minute.`)
  const told = await look(context, taken)
  if (told.status !== 'processing')
    throw new Refusal(`The provider can tell: the order ${orderId} is ${told.status} now.`)
  const resolved = await settle(db, taken, verdictOf(taken, as), { because })
  log.warn({ order_id: orderId, as }, 'An operator resolved a charge.')
  return resolved
}

/** The order as the provider's word leaves it; that it cannot be settled by that word is a reason for the operator's. */
async function look(context: BillingContext, taken: Order): Promise<Order> {
  try {
    return await lookIntoCharge(context, taken)
  } catch (error) {
    if (isUnavailable(error)) throw error
    context.log.error({ err: error, order_id: taken.order_id }, 'A charge cannot be settled by what its provider says.')
    return taken
  }
}

function verdictOf(order: Order, as: Resolution): Verdict {
  if (as === 'cancelled') return { outcome: 'refused' }
  const { order_id: reference, currency_code: currencyCode } = order
  const amountMinor = minorFromDatabase(order.amount, currencyCode)
  return { outcome: as, reference, amountMinor, currencyCode, details: noDetails }
}
