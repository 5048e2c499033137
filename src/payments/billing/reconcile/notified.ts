// Settles the charge that a notification of the provider is about. Notifications are only hints: the provider is asked.
import { isUuid } from '../../../lib/ids.ts'
import type { Statement } from '../../../lib/pg/types.ts'
import type { AccountName } from '../../providers/account.ts'
import { errorOf, type Provider, ProviderError } from '../../providers/provider.ts'
import type { BillingContext } from '../context.ts'
import { CHARGE } from '../kinds.ts'
import { AT_PROVIDER, type AtProvider, atParams, findByCharge, type OrderIds } from '../ledger/orders.ts'
import { checkNow } from '../movement/check-status.ts'
import { endLate } from './late.ts'

/** A notification has to be handled later, although the provider can be asked. */
export class ReceivedTooEarly extends ProviderError {}

/**
 * Settles the order that a notification names, if it is in progress. If it was cancelled because its payment was not found for long,
 * the payment that came after all is cancelled. Throws `ProviderError` if that cannot be done now.
 */
export async function settleOrEnd(
  context: BillingContext,
  provider: Provider,
  { organizationId, psp, merchantId }: AccountName,
  orderId: string,
  handle: string | null,
): Promise<void> {
  const order = await CHARGE.rows.find(context.db.query, orderId)
  if (order?.organization_id !== organizationId) return
  if (order.status === 'processing') return checkNow(context, CHARGE, order)
  const isHere = order.psp === psp && order.psp_merchant_id === merchantId
  if (order.status !== 'cancelled' || !isHere || handle === null || provider.traits.refuse !== 'wait_out') return
  if ((await endLate(context, provider, CHARGE, order, handle)) === 'still open')
    throw new ProviderError('a payment of a cancelled order is still open')
}

/** Checks at once a charge in progress that the provider has news of; does nothing when there is none. */
async function settleNow(context: BillingContext, organizationId: string, orderId: string): Promise<void> {
  const order = await CHARGE.rows.find(context.db.query, orderId)
  if (order?.organization_id === organizationId && order.status === 'processing') await checkNow(context, CHARGE, order)
}

/**
 * Settles the order of a payment that succeeded at the provider while it is in progress here: notifications of its refunds and
 * disputes may come first, and need a settled order. Throws `ProviderError` if it is still in progress after that: another process
 * has it, an operator must judge it, or the provider cannot be asked.
 */
export async function settleBefore(
  context: BillingContext,
  provider: Pick<Provider, 'referenceOf'>,
  at: AtProvider,
  chargeTransactionId: string,
): Promise<void> {
  const order =
    (await findByHandle(context, at, chargeTransactionId)) ??
    (await findByReference(context, provider, at, chargeTransactionId))
  if (!order) return
  await settleNow(context, order.organization_id, order.order_id)
  if ((await CHARGE.rows.find(context.db.query, order.order_id))?.status === 'processing')
    throw new ReceivedTooEarly('the charge is not settled yet')
}

/** The order in progress of a payment whose id is not stored yet, because the provider has no prepared payments. */
async function findByReference(
  { db }: BillingContext,
  provider: Pick<Provider, 'referenceOf'>,
  at: AtProvider,
  chargeTransactionId: string,
): Promise<OrderIds | undefined> {
  if (!provider.referenceOf || (await findByCharge(db.query, at, chargeTransactionId))) return undefined
  const orderId = await orderNamedBy(provider, chargeTransactionId)
  if (orderId === undefined) return undefined
  const order = await CHARGE.rows.find(db.query, orderId)
  const isOurs = order?.organization_id === at.organizationId && order.psp === at.psp
  return isOurs && order.psp_merchant_id === at.merchantId && order.status === 'processing' ? order : undefined
}

/** Whether Tundish made a payment and has no order of that id, as after a restored backup until the charge is adopted. */
export async function isLost(
  { db }: Pick<BillingContext, 'db'>,
  provider: Pick<Provider, 'referenceOf'>,
  chargeTransactionId: string,
): Promise<boolean> {
  const orderId = await orderNamedBy(provider, chargeTransactionId)
  return orderId !== undefined && !(await CHARGE.rows.find(db.query, orderId))
}

async function orderNamedBy(provider: Pick<Provider, 'referenceOf'>, chargeTransactionId: string) {
  const found = await provider.referenceOf?.(chargeTransactionId)
  if (found && 'outcome' in found) throw errorOf(found)
  const reference = found?.reference ?? ''
  return isUuid(reference) ? reference.toLowerCase() : undefined
}

/** Checks at once the charge in progress of a prepared payment, if there is one. */
export async function settleByHandle(context: BillingContext, at: AtProvider, handle: string): Promise<void> {
  const order = await findByHandle(context, at, handle)
  if (order) await settleNow(context, order.organization_id, order.order_id)
}

async function findByHandle({ db }: BillingContext, at: AtProvider, handle: string): Promise<OrderIds | undefined> {
  const [order] = await db.query<OrderIds>(FIND_IN_PROGRESS, [handle, ...atParams(at)])
  return order
}

const FIND_IN_PROGRESS: Statement = {
  name: 'find order in progress by handle',
  text: `select organization_id, order_id from orders o
         where o.status = 'processing' and o.provider_handle = $1 and ${AT_PROVIDER}`,
}
