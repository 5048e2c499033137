// Adopts a charge that was made under its key before, by an order that a restored backup had forgotten.
import type { Query } from '../../../lib/pg/types.ts'
import type { Settled, Unknown } from '../../providers/outcomes.ts'
import type { Dispute, Provider, RefundAtProvider } from '../../providers/provider.ts'
import type { BillingContext } from '../context.ts'
import type { Note } from '../movement/provider-calls.ts'
import type { Outcome } from './effects.ts'
import type { Order } from './row.ts'
import { settleAdopted } from './settle.ts'

/** Takes over what belongs to a charge at the provider, in the transaction that settles its order. */
export type TakeOver = (
  query: Query,
  settled: Outcome,
  refunds: readonly RefundAtProvider[],
  disputes: readonly Dispute[],
) => Promise<void>

/** Settles an order by a charge that was made under its key before, and takes over the refunds and disputes of that charge. */
export async function adopt(
  context: BillingContext,
  takeOver: TakeOver,
  provider: Provider,
  order: Order,
  verdict: Settled,
  note: Note | undefined,
): Promise<Order | Unknown> {
  const { db, log } = context
  const { order_id } = order
  const chargeTransactionId = verdict.details.psp_transaction_id
  log.warn({ order_id, first_reference: verdict.reference }, 'The key was charged before: the charge is adopted.')
  if (verdict.outcome === 'failed' || chargeTransactionId === null) return settleAdopted(db, order, verdict, note)
  const refunds = await provider.refundsOf({ chargeTransactionId })
  if (!Array.isArray(refunds)) return refunds
  const disputes = await disputesOf(context, provider, order, chargeTransactionId)
  if (!Array.isArray(disputes)) return disputes
  return settleAdopted(db, order, verdict, note, (query, settled) => takeOver(query, settled, refunds, disputes))
}

/** Credentials that may not read disputes must not keep the charge in progress: `reconcile` finds the disputes later. */
async function disputesOf(
  { log }: BillingContext,
  provider: Provider,
  { order_id }: Order,
  chargeTransactionId: string,
): Promise<Dispute[] | Unknown> {
  const disputes = (await provider.disputesOf?.({ chargeTransactionId })) ?? []
  if (Array.isArray(disputes) || disputes.missingPermission === undefined) return disputes
  log.warn({ order_id, why: disputes.why }, 'The disputes of an adopted charge cannot be read.')
  return []
}
