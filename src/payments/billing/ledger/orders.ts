// What every movement and dispute needs of the order that it belongs to: its lock, and how the provider's account and charge lead to it.
import type { Param, Query, Statement } from '../../../lib/pg/types.ts'

export type OrderIds = { organization_id: string; order_id: string }

/** An order and its customer. */
export type CustomerOrder = OrderIds & { external_id: string }

/** A merchant account, or all that a provider serves: `*` is any merchant id, null any organization. */
export interface AtProvider {
  psp: string
  merchantId: string
  organizationId: string | null
}

/** The parameters 2 to 4 of `AT_PROVIDER`. */
export const atParams = ({ psp, merchantId, organizationId }: AtProvider): Param[] => [psp, merchantId, organizationId]

/** SQL: whether an order `o` is of the account in the parameters 2 to 4. */
export const AT_PROVIDER = isAt('$2', '$3', '$4::text')

/** SQL: whether an order `o` is of this account, given as in `AtProvider`. */
export function isAt(psp: string, merchantId: string, organizationId: string): string {
  return `o.psp = ${psp} and (${merchantId} = '*' or o.psp_merchant_id = ${merchantId})
    and (${organizationId} is null or o.organization_id = ${organizationId})`
}

/**
 * Locks an order until commit. A statement that locks it and reads other rows sees these as they were before it waited for
 * the lock. The next statement sees what was committed while it waited. Sent together, both are one round trip.
 */
export async function lockOrder(query: Query, organizationId: string, orderId: string): Promise<void> {
  await query(LOCK_ORDER, [organizationId, orderId])
}

const LOCK_ORDER: Statement = {
  name: 'lock order',
  text: 'select from orders where organization_id = $1 and order_id = $2 for no key update',
}

/** The order of a charge, by the provider's id of it. */
export async function findByCharge(
  query: Query,
  at: AtProvider,
  chargeTransactionId: string,
): Promise<CustomerOrder | undefined> {
  const [order] = await query<CustomerOrder>(FIND_BY_CHARGE, [chargeTransactionId, ...atParams(at)])
  return order
}

const FIND_BY_CHARGE: Statement = {
  name: 'find order by charge',
  text: `select o.organization_id, o.order_id, o.external_id from orders o
         where o.charge_transaction_id = $1 and ${AT_PROVIDER}`,
}
