// Adopts the refunds of a charge at the provider, for notifications, which are only hints, and for `reconcile`.
import { endWhenStalled } from '../../../lib/pg/stalled.ts'
import { errorOf, type Provider, type RefundAtProvider } from '../../providers/provider.ts'
import type { BillingContext } from '../context.ts'
import { type AtProvider, type CustomerOrder, findByCharge } from '../ledger/orders.ts'
import { checkNow } from '../movement/check-status.ts'
import type { Adoption } from '../movement/kind-of-movement.ts'
import { adoptOne } from './adopt.ts'
import { REFUND } from './check.ts'
import { refundsInProgress } from './row.ts'

/**
 * Brings the refunds of a charge up to date with the provider: one that was made there is adopted, one that failed after
 * it had succeeded is undone, one in progress is settled. Repeating it changes nothing. Undefined: no order here has the
 * charge. Throws `ProviderError` if the provider cannot list them.
 */
export async function adoptRefundsOfCharge(
  context: BillingContext,
  provider: Provider,
  at: AtProvider,
  chargeTransactionId: string,
): Promise<Adoption[] | undefined> {
  const order = await findByCharge(context.db.query, at, chargeTransactionId)
  if (!order) return undefined
  const refunds = await provider.refundsOf({ chargeTransactionId })
  if (!Array.isArray(refunds)) throw errorOf(refunds)
  const adoptions: Adoption[] = []
  for (const refund of refunds) adoptions.push(await bringUpToDate(context, order, refund))
  return adoptions
}

async function bringUpToDate(
  context: BillingContext,
  order: CustomerOrder,
  refund: RefundAtProvider,
): Promise<Adoption> {
  const { adoption, refundId } = await adoptAlone(context, order, refund)
  if (adoption !== 'in_progress' && adoption !== 'may_be_ours') return adoption
  const row = await refundsInProgress.find(context.db.query, refundId!)
  if (row) await checkNow(context, REFUND, row)
  return adoption === 'in_progress' ? adoption : (await adoptAlone(context, order, refund)).adoption
}

/** Adopts a refund in one transaction. */
async function adoptAlone({ db, log }: BillingContext, order: CustomerOrder, refund: RefundAtProvider) {
  const { adoption, refundId } = await db.tx(async (query, commit) => {
    await endWhenStalled(query)
    return adoptOne(query, order, refund, commit)
  })
  const about = { order_id: order.order_id, refund_id: refundId, psp_transaction_id: refund.transactionId }
  if (adoption === 'mismatch')
    log.error(about, 'A refund at the provider does not fit its order: an operator must judge it.')
  else if (adoption === 'adopted' || adoption === 'failed_later')
    log.info({ ...about, adoption }, 'A refund was taken over.')
  return { adoption, refundId }
}
