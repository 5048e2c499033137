// Records the disputes of charges at the provider, for notifications and for `reconcile`.
import { endWhenStalled } from '../../../lib/pg/stalled.ts'
import type { Dispute } from '../../providers/provider.ts'
import type { BillingContext } from '../context.ts'
import { adoptDispute } from './dispute.ts'
import { type AtProvider, findByCharge, type OrderIds } from './orders.ts'

const LOGGED = {
  open: 'A charge is disputed.',
  won: 'A dispute was won.',
  lost: 'A dispute was lost.',
}

/** Records disputes of orders that are here, and returns how many of them changed something. */
export async function recordDisputes(
  context: BillingContext,
  at: AtProvider,
  disputes: AsyncIterable<Dispute> | Iterable<Dispute>,
): Promise<number> {
  let changed = 0
  for await (const dispute of disputes) {
    const order = await findByCharge(context.db.query, at, dispute.chargeTransactionId)
    if (order && (await recordDispute(context, order, dispute))) changed++
  }
  return changed
}

/** Records the state of a dispute in one transaction, and returns whether it changed something. */
export async function recordDispute(
  { db, log }: Pick<BillingContext, 'db' | 'log'>,
  disputed: OrderIds,
  dispute: Dispute,
): Promise<boolean> {
  const change = await db.tx(async (query, commit) => {
    await endWhenStalled(query)
    return adoptDispute(query, disputed, dispute, commit)
  })
  if (change.isAny) log.warn({ order_id: disputed.order_id, dispute_id: dispute.disputeId }, LOGGED[dispute.status])
  return change.isAny
}
