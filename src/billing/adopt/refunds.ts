// Adopts the refunds of a charge at the provider, for notifications, which are only hints, and for `reconcile`.
import { endWhenStalled } from '../../lib/pg/stalled.ts'
import type { Query, Statement } from '../../lib/pg/types.ts'
import { type Provider, ProviderError, type RefundAtProvider } from '../../providers/provider.ts'
import {
  AT_PROVIDER,
  type AtProvider,
  ORDER_COLUMNS,
  type Order,
  type OrderIds,
  ordersInProgress,
} from '../charge/orders.ts'
import type { BillingContext } from '../context.ts'
import { refundsInProgress } from '../refund/refunds.ts'
import { leaseMs } from '../unknown/lease.ts'
import { CHARGE, look, orUnsettled, REFUND } from '../unknown/look.ts'
import { type Adoption, adoptOne } from './refund.ts'

/**
 * Brings the refunds of a charge up to date with the provider: one that was made there is adopted, one that failed after
 * it had succeeded is undone, one in progress is settled. Repeating it changes nothing. Undefined: no order here has the
 * charge. Throws `ProviderError` when the provider cannot tell.
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
  if (!Array.isArray(refunds)) throw new ProviderError(refunds.why)
  const adoptions: Adoption[] = []
  for (const refund of refunds) adoptions.push(await bringUpToDate(context, order, refund))
  return adoptions
}

async function bringUpToDate(context: BillingContext, order: Order, refund: RefundAtProvider): Promise<Adoption> {
  const { db, log, providerTimeoutMs } = context
  const { adoption, refundId } = await db.tx(async (query, commit) => {
    await endWhenStalled(query)
    return adoptOne(query, order, refund, commit)
  })
  const about = { order_id: order.order_id, refund_id: refundId, psp_transaction_id: refund.transactionId }
  if (adoption === 'mismatch')
    log.error(about, 'A refund at the provider does not fit its order: an operator must judge it.')
  else if (adoption === 'adopted' || adoption === 'failed_later')
    log.info({ ...about, adoption }, 'A refund was taken over.')
  if (adoption !== 'in_progress') return adoption
  const row = await refundsInProgress.find(db.query, refundId!)
  const taken = row && (await refundsInProgress.take(db, row, leaseMs(providerTimeoutMs, 2)))
  if (taken) await orUnsettled(context, taken, () => look(context, REFUND, taken))
  return adoption
}

/**
 * Looks at once at a charge in progress that the provider has news of; does nothing when there is none. False: another
 * process has it.
 */
export async function settleNow(context: BillingContext, organizationId: string, orderId: string): Promise<boolean> {
  const { db, providerTimeoutMs } = context
  const order = await ordersInProgress.find(db.query, orderId)
  if (order?.organization_id !== organizationId || order.status !== 'processing') return true
  const taken = await ordersInProgress.take(db, order, leaseMs(providerTimeoutMs, 2))
  if (taken) await orUnsettled(context, taken, () => look(context, CHARGE, taken))
  return taken !== undefined
}

/**
 * Settles the order of a payment that succeeded at the provider while it is in progress here: refunds and disputes of it
 * may be heard of first, and need a settled order. Throws `ProviderError` while another process has the order.
 */
export async function settleBefore(context: BillingContext, at: AtProvider, handle: string): Promise<void> {
  const [order] = await context.db.query<OrderIds>(FIND_IN_PROGRESS, [handle, ...at])
  if (!order) return
  if (!(await settleNow(context, order.organization_id, order.order_id)))
    throw new ProviderError('Another process is still settling the charge.')
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
