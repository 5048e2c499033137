// Orders, one for each custom charge: their columns, their references at the provider, and the handle of a prepared payment.
import type { Lanes } from '../../../lib/batching.ts'
import { isUuid } from '../../../lib/ids.ts'
import type { Db } from '../../../lib/pg/db.ts'
import { rowReader } from '../../../lib/pg/row-reader.ts'
import type { NamedRow, Query, Statement } from '../../../lib/pg/types.ts'
import type { Prepared } from '../../providers/outcomes.ts'
import type { Provider, Reference } from '../../providers/provider.ts'
import { minorFromDatabase } from '../amount.ts'
import { AT_PROVIDER, type AtProvider, atParams, type OrderIds } from '../ledger/orders.ts'
import { type InProgress, inProgress } from '../movement/in-progress.ts'
import { providerKey } from '../movement/keys.ts'
import { deleteCounted } from './caps.ts'

export type Status = 'processing' | 'succeeded' | 'failed' | 'cancelled'

/** An order as its row says. */
export interface OrderRow extends InProgress {
  organization_id: string
  order_id: string
  external_id: string
  project_id: string
  /** The amount to charge, or that was charged. */
  amount: string
  currency_code: string
  /** The requested amount, which differs from `amount` if the provider charged another. */
  asked_amount: string
  asked_currency_code: string
  status: Status
  failed_message_for_user: string
  psp: string
  psp_merchant_id: string | null
  region: string | null
  payment_method_token: string
  provider_key: string
  /** The provider's id of the prepared payment, or of the one that was adopted. */
  provider_handle: string | null
  provider_customer: string | null
  has_metadata: boolean
  /** Whether its money counts for caps. */
  is_counted: boolean
  /** The credits that its request says it grants; null if it does not. */
  grants: string | null
}

export interface Order extends OrderRow {
  /** The provider had charged under its key before the order was made; set where that was just found, no column. */
  is_adopted?: boolean
}

/** The columns of `ORDER_COLUMNS` that are not text. */
export const ORDER_NOT_TEXT = {
  status_checks: 'number',
  age_ms: 'number',
  not_found_ms: 'number',
  has_metadata: 'boolean',
  is_counted: 'boolean',
} as const

export const orderFrom: (row: NamedRow) => Order = rowReader<Omit<OrderRow, 'is_unsent'>>(ORDER_NOT_TEXT)

export const ORDER_COLUMNS = `o.organization_id, o.order_id, o.external_id, o.project_id, o.amount, o.currency_code,
  coalesce(o.asked_amount, o.amount) as asked_amount,
  coalesce(o.asked_currency_code, o.currency_code) as asked_currency_code,
  o.status, o.failed_message_for_user, o.psp, o.psp_merchant_id, o.region, o.payment_method_token, o.provider_key,
  coalesce(o.provider_handle, o.charge_transaction_id) as provider_handle, o.provider_customer, o.looks as status_checks,
  extract(epoch from db_clock() - coalesce(o.begun_at, o.created_at)) * 1000 as age_ms,
  extract(epoch from db_clock() - o.not_found_at) * 1000 as not_found_ms,
  o.client_metadata is not null as has_metadata, o.grants,
  o.is_counted`

/** The provider's key of a charge. */
export function chargeKey(organizationId: string, externalId: string, idempotencyKey: string): string {
  return providerKey(organizationId, externalId, idempotencyKey)
}

/** Orders in progress: leases and the queue of status checks. */
export const ordersInProgress = inProgress<Order>({
  name: 'orders',
  noun: 'order',
  alias: 'o',
  id: 'order_id',
  columns: ORDER_COLUMNS,
  read: orderFrom,
  giveBack: deleteCounted,
})

/** An organization's charges are claimed and settled in turns: while one set is under way, the next of each kind grows. */
export const chargeLanes: Lanes = new WeakMap()

/**
 * Stores the handle of a prepared payment, committed before anything can be charged through it, and begins the lease
 * anew. Undefined: another process has the order or settled it, so this one must not confirm.
 */
export async function storeHandle(
  db: Db,
  order: Order,
  prepared: Prepared,
  leaseMs: number,
): Promise<Order | undefined> {
  const { organization_id, order_id, status_checks } = order
  const { handle, providerCustomer = null } = prepared
  const params = [organization_id, order_id, status_checks, handle, providerCustomer, leaseMs / 1000]
  const [stored] = await db.query(STORE_HANDLE, params)
  return stored && orderFrom(stored)
}

const STORE_HANDLE: Statement = {
  name: 'store handle of prepared payment',
  text: `
    update orders o set provider_handle = $4, provider_customer = coalesce($5, provider_customer),
      prepared_at = t.now, begun_at = t.now, lease_until = t.now + make_interval(secs => $6),
      next_look_at = t.now + make_interval(secs => $6)
    from (select db_clock() as now) t
    where organization_id = $1 and order_id = $2 and looks = $3 and status = 'processing'
    returning ${ORDER_COLUMNS}`,
}

/**
 * Stores the provider's id that its list has of an order without one: of a payment in progress, or of the charge of an order
 * that an operator has said to have succeeded, so that its refunds are found and can be made.
 */
export async function rememberHandle(query: Query, { organization_id, order_id }: OrderIds, handle: string) {
  await query(REMEMBER_HANDLE, [organization_id, order_id, handle])
}

const REMEMBER_HANDLE: Statement = {
  name: 'remember handle of listed payment',
  text: `update orders set provider_handle = $3, charge_transaction_id = case status when 'succeeded' then $3 end
         where organization_id = $1 and order_id = $2 and status in ('processing', 'succeeded')
           and provider_handle is null and charge_transaction_id is null`,
}

/** Orders of a provider that succeeded since an instant; of one merchant account unless it serves all of them. */
export async function findSucceededSince(query: Query, provider: AtProvider, since: string): Promise<Order[]> {
  const rows = await query(
    `select ${ORDER_COLUMNS} from orders o where o.status = 'succeeded' and o.settled_at >= $1 and ${AT_PROVIDER}`,
    [since, ...atParams(provider)],
  )
  return rows.map(orderFrom)
}

/** The reference of an order's charge at the provider. */
export function reference(order: Order): Reference {
  const { provider_key, order_id, psp_merchant_id, region, provider_handle } = order
  return { key: provider_key, reference: order_id, merchantId: psp_merchant_id ?? '', region, handle: provider_handle }
}

/** The request that charges an order. */
export function chargeRequest(
  order: Order,
  traceparent: string | undefined,
): Parameters<NonNullable<Provider['charge']>>[0] {
  const { amount, currency_code, payment_method_token, provider_customer } = order
  return {
    ...reference(order),
    amountMinor: minorFromDatabase(amount, currency_code),
    currencyCode: currency_code,
    token: payment_method_token,
    providerCustomer: provider_customer,
    traceparent,
  }
}

/** Whether this is the id of another order of the organization. */
export async function isOtherOrder(query: Query, { organization_id, order_id }: Order, id: string): Promise<boolean> {
  if (!isUuid(id) || id === order_id) return false
  const found = await query('select 1 from orders where organization_id = $1 and order_id = $2', [organization_id, id])
  return found.length > 0
}
