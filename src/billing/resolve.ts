// Ends, by an operator's word, a charge or a refund that no provider can ever tell about.
import type { Db } from '../lib/db.ts'
import { Refusal } from '../lib/errors.ts'
import { noDetails } from '../providers/provider.ts'
import { minorFromDatabase } from './amount.ts'
import { settle as settleCharge, type Verdict } from './charge-settlement.ts'
import { findOrder, type Order, take as takeOrder } from './charges.ts'
import type { BillingContext } from './context.ts'
import { leaseMs } from './lease.ts'
import { idsOf, lookIntoCharge, lookIntoRefund, orUnsettled } from './looks.ts'
import { findRefund, type Refund, take as takeRefund } from './refund-records.ts'
import { settle as settleRefund } from './refund-settlement.ts'

export type Resolution = 'succeeded' | 'failed' | 'cancelled'

/** What is done with a charge and with a refund. */
interface Kind<T extends Order | Refund> {
  /** What it is called in a sentence. */
  name: string
  take(db: Db, found: T, leaseMs: number): Promise<T | undefined>
  look(context: BillingContext, taken: T): Promise<T>
  settle(db: Db, taken: T, verdict: Verdict, word: { because: string }): Promise<T>
}

const CHARGE: Kind<Order> = { name: 'order', take: takeOrder, look: lookIntoCharge, settle: settleCharge }
const REFUND: Kind<Refund> = { name: 'refund', take: takeRefund, look: lookIntoRefund, settle: settleRefund }

interface Word {
  as: Resolution
  because: string
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
  const { db } = context
  const word = { as, because }
  const order = await findOrder(db.query, id)
  if (order) return { order: await resolveOne(context, CHARGE, id, order, word) }
  const refund = await findRefund(db.query, id)
  if (!refund) throw new Refusal(`There is no order and no refund ${id}.`)
  if (as === 'cancelled') throw new Refusal('A refund is never cancelled: it has succeeded or failed.')
  return { refund: await resolveOne(context, REFUND, id, refund, word) }
}

async function resolveOne<T extends Order | Refund>(
  context: BillingContext,
  kind: Kind<T>,
  id: string,
  found: T,
  { as, because }: Word,
): Promise<T> {
  const { db, log, providerTimeoutMs } = context
  const name = `${kind.name} ${id}`
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
