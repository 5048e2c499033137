// Settles the charge that a notification of the provider is about. Notifications are only hints: the provider is asked.
import type { Statement } from '../../../lib/pg/types.ts'
import { ProviderError } from '../../providers/provider.ts'
import type { BillingContext } from '../context.ts'
import { CHARGE } from '../kinds.ts'
import { AT_PROVIDER, type AtProvider, atParams, type OrderIds } from '../ledger/orders.ts'
import { checkNow } from '../movement/check-status.ts'

/** Checks at once a charge in progress that the provider has news of; does nothing when there is none. */
export async function settleNow(context: BillingContext, organizationId: string, orderId: string): Promise<void> {
  const order = await CHARGE.rows.find(context.db.query, orderId)
  if (order?.organization_id === organizationId && order.status === 'processing') await checkNow(context, CHARGE, order)
}

/**
 * Settles the order of a payment that succeeded at the provider while it is in progress here: notifications of its refunds and
 * disputes may come first, and need a settled order. Throws `ProviderError` if it is still in progress after that: another process
 * has it, or the provider cannot be asked.
 */
export async function settleBefore(context: BillingContext, at: AtProvider, handle: string): Promise<void> {
  if (!(await settleByHandle(context, at, handle))) return
  if ((await context.db.query(FIND_IN_PROGRESS, [handle, ...atParams(at)])).length > 0)
    throw new ProviderError('The charge is not settled yet.')
}

/** Checks at once the charge in progress of a prepared payment; false if there is none. */
export async function settleByHandle(context: BillingContext, at: AtProvider, handle: string): Promise<boolean> {
  const [order] = await context.db.query<OrderIds>(FIND_IN_PROGRESS, [handle, ...atParams(at)])
  if (order) await settleNow(context, order.organization_id, order.order_id)
  return order !== undefined
}

const FIND_IN_PROGRESS: Statement = {
  name: 'find order in progress by handle',
  text: `select organization_id, order_id from orders o
         where o.status = 'processing' and o.provider_handle = $1 and ${AT_PROVIDER}`,
}
