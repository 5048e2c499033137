// Ends, by an operator's word, a charge or a refund that no provider can ever tell about.
import { isUnavailable } from '../lib/db.ts'
import { Refusal } from '../lib/errors.ts'
import { noDetails } from '../providers/provider.ts'
import { minorFromDatabase } from './amount.ts'
import { settle as settleCharge, type Verdict } from './charge-settlement.ts'
import { findOrder, type Order, take as takeOrder } from './charges.ts'
import type { BillingContext } from './context.ts'
import { leaseMs } from './lease.ts'
import { lookIntoCharge, lookIntoRefund } from './looks.ts'
import { findRefund, type Refund, take as takeRefund } from './refund-records.ts'
import { settle as settleRefund } from './refund-settlement.ts'

export type Resolution = 'succeeded' | 'failed' | 'cancelled'

/** What a charge and a refund have in common here. */
interface Subject<T extends Order | Refund> {
  /** What it is called in a sentence. */
  name: string
  found: T
  take(): Promise<T | undefined>
  look(taken: T): Promise<T>
  settle(taken: T, verdict: Verdict): Promise<T>
}

/**
 * Settles an order or a refund in progress as the operator says, and keeps the reason. The provider is asked once more:
 * when it can tell, it is settled by its word instead, and the operator's is refused.
 */
export async function resolve(
  context: BillingContext,
  id: string,
  as: Resolution,
  because: string,
): Promise<{ order: Order } | { refund: Refund }> {
  const { db, providerTimeoutMs } = context
  const lease = leaseMs(providerTimeoutMs, 2)
  const order = await findOrder(db.query, id)
  if (order) {
    const subject: Subject<Order> = {
      name: `order ${id}`,
      found: order,
      take: () => takeOrder(db, order, lease),
      look: (taken) => lookIntoCharge(context, taken),
      settle: (taken, verdict) => settleCharge(db, taken, verdict, { because }),
    }
    return { order: await resolveOne(context, subject, as) }
  }
  const refund = await findRefund(db.query, id)
  if (!refund) throw new Refusal(`There is no order and no refund ${id}.`)
  if (as === 'cancelled') throw new Refusal('A refund is never cancelled: it has succeeded or failed.')
  const subject: Subject<Refund> = {
    name: `refund ${id}`,
    found: refund,
    take: () => takeRefund(db, refund, lease),
    look: (taken) => lookIntoRefund(context, taken),
    settle: (taken, verdict) => settleRefund(db, taken, verdict, { because }),
  }
  return { refund: await resolveOne(context, subject, as) }
}

async function resolveOne<T extends Order | Refund>(
  context: BillingContext,
  subject: Subject<T>,
  as: Resolution,
): Promise<T> {
  const { name, found } = subject
  if (found.status !== 'processing') throw new Refusal(`The ${name} is ${found.status} already.`)
  const taken = await subject.take()
  if (!taken) throw new Refusal(`The ${name} is being made or settled at this moment: try again in a minute.`)
  const told = await look(context, subject, taken)
  if (told.status !== 'processing') throw new Refusal(`The provider can tell: the ${name} is ${told.status} now.`)
  const resolved = await subject.settle(taken, verdictOf(taken, as))
  context.log.warn({ ...idsOf(taken), as }, 'An operator resolved a charge or a refund.')
  return resolved
}

/** It as the provider's word leaves it; that it cannot be settled by that word is a reason for the operator's. */
async function look<T extends Order | Refund>({ log }: BillingContext, subject: Subject<T>, taken: T): Promise<T> {
  try {
    return await subject.look(taken)
  } catch (error) {
    if (isUnavailable(error)) throw error
    log.error({ err: error, ...idsOf(taken) }, 'What a provider says cannot be settled.')
    return taken
  }
}

const idsOf = (one: Order | Refund) => ({
  order_id: one.order_id,
  ...('refund_id' in one && { refund_id: one.refund_id }),
})

function verdictOf(one: Order | Refund, as: Resolution): Verdict {
  if (as === 'cancelled') return { outcome: 'refused' }
  const reference = 'refund_id' in one ? one.refund_id : one.order_id
  const amountMinor = minorFromDatabase(one.amount, one.currency_code)
  return { outcome: as, reference, amountMinor, currencyCode: one.currency_code, details: noDetails }
}
