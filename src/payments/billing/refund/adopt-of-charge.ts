// Adopts the refunds of a charge at the provider, for notifications, which are only hints, and for `reconcile`.
import { endWhenStalled } from '../../../lib/pg/stalled.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import { errorOf, type Provider, ProviderError, type RefundAtProvider } from '../../providers/provider.ts'
import {
  AT_PROVIDER,
  type AtProvider,
  ORDER_COLUMNS,
  type Order,
  type OrderIds,
  ordersInProgress,
} from '../charge/row.ts'
import type { BillingContext } from '../context.ts'
import { CHARGE, type Kind, look, orUnsettled, REFUND } from '../movement/check-status.ts'
import { leaseMs } from '../movement/lease.ts'
import { type Adoption, adoptOne } from './adopt.ts'
import { type Refund, refundsInProgress } from './row.ts'

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

async function bringUpToDate(context: BillingContext, order: Order, refund: RefundAtProvider): Promise<Adoption> {
  const { adoption, refundId } = await adoptAlone(context, order, refund)
  if (adoption !== 'in_progress' && adoption !== 'may_be_ours') return adoption
  const row = await refundsInProgress.find(context.db.query, refundId!)
  if (row) await lookNow(context, REFUND, row)
  return adoption === 'in_progress' ? adoption : (await adoptAlone(context, order, refund)).adoption
}

/** Adopts a refund in a transaction of its own. */
async function adoptAlone({ db, log }: BillingContext, order: Order, refund: RefundAtProvider) {
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

/**
 * Looks at once at a row in progress that the provider has news of. The process that has it may have asked the provider before
 * there was any: then the row is looked at again as soon as that process gives it back.
 */
async function lookNow<Row extends Order | Refund>(context: BillingContext, kind: Kind<Row>, row: Row): Promise<void> {
  const taken = await kind.rows.take(context.db, row, leaseMs(context.providerTimeoutMs, 2))
  if (taken) await orUnsettled(context, taken, () => look(context, kind, taken))
  else await kind.rows.noteNews(context.db, row)
}

/** Looks at once at a charge in progress that the provider has news of; does nothing when there is none. */
export async function settleNow(context: BillingContext, organizationId: string, orderId: string): Promise<void> {
  const order = await ordersInProgress.find(context.db.query, orderId)
  if (order?.organization_id === organizationId && order.status === 'processing') await lookNow(context, CHARGE, order)
}

/**
 * Settles the order of a payment that succeeded at the provider while it is in progress here: notifications of its refunds and
 * disputes may come first, and need a settled order. Throws `ProviderError` if it is still in progress after that: another process
 * has it, or the provider cannot be asked.
 */
export async function settleBefore(context: BillingContext, at: AtProvider, handle: string): Promise<void> {
  if (!(await settleByHandle(context, at, handle))) return
  if ((await context.db.query(FIND_IN_PROGRESS, [handle, ...at])).length > 0)
    throw new ProviderError('The charge is not settled yet.')
}

/** Looks at once at the charge in progress of a prepared payment; false if there is none. */
export async function settleByHandle(context: BillingContext, at: AtProvider, handle: string): Promise<boolean> {
  const [order] = await context.db.query<OrderIds>(FIND_IN_PROGRESS, [handle, ...at])
  if (order) await settleNow(context, order.organization_id, order.order_id)
  return order !== undefined
}

const FIND_IN_PROGRESS: Statement = {
  name: 'find order in progress by handle',
  text: `select organization_id, order_id from orders o
         where o.status = 'processing' and o.provider_handle = $1 and ${AT_PROVIDER}`,
}

/** The order of a charge, by the provider's id of it. */
export async function findByCharge(
  query: Query,
  at: AtProvider,
  chargeTransactionId: string,
): Promise<Order | undefined> {
  const [order] = await query<Order>(FIND_BY_CHARGE, [chargeTransactionId, ...at])
  return order
}

const FIND_BY_CHARGE: Statement = {
  name: 'find order by charge',
  text: `select ${ORDER_COLUMNS} from orders o where o.charge_transaction_id = $1 and ${AT_PROVIDER}`,
}
