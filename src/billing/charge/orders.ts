// Orders, one a custom charge: find, hand over to settling, take what is due. Claiming and settling have files of their own.

import type { Lanes } from '../../lib/batching.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { NamedRow, Query, Statement } from '../../lib/pg/types.ts'
import type { Reference } from '../../providers/provider.ts'
import { pauseSeconds } from '../unknown/lease.ts'

export type Status = 'processing' | 'succeeded' | 'failed' | 'cancelled'

/** An order as its row says. */
export type Order = {
  organization_id: string
  order_id: string
  external_id: string
  project_id: string
  amount: string
  currency_code: string
  status: Status
  failed_message_for_user: string
  psp: string
  psp_merchant_id: string | null
  region: string | null
  payment_method_token: string
  provider_key: string
  looks: string
  has_metadata: 't' | 'f'
}

export const ORDER_COLUMNS = `o.organization_id, o.order_id, o.external_id, o.project_id, o.amount, o.currency_code,
  o.status, o.failed_message_for_user, o.psp, o.psp_merchant_id, o.region, o.payment_method_token, o.provider_key, o.looks,
  o.client_metadata is not null as has_metadata`

/** An organization's charges are claimed and settled in turns: while one set is under way, the next of each kind grows. */
export const chargeLanes: Lanes = new WeakMap()

/** Gives the order up to settling: its outcome is unknown, and its holder will do nothing more about it. */
export async function handOver(db: Db, order: Order): Promise<void> {
  const { organization_id, order_id, looks } = order
  await db.query(HAND_OVER, [organization_id, order_id, looks, pauseSeconds(Number(looks))])
}

// `looks` tells whether the order is still in the hands of whoever gives it up.
const HAND_OVER: Statement = {
  name: 'hand over order',
  text: `update orders set lease_until = null, next_look_at = db_clock() + make_interval(secs => $4)
         where organization_id = $1 and order_id = $2 and looks = $3 and status = 'processing'`,
}

/** Takes up to `limit` orders that are due, of any organization, for as long as the lease. */
export async function takeDue(db: Db, limit: number, leaseMs: number): Promise<Order[]> {
  return db.query<Order>(TAKE_DUE, [limit, leaseMs / 1000])
}

const TAKE_DUE: Statement = {
  name: 'take due orders',
  text: `
    with due as (
      select organization_id, order_id from orders
      where status = 'processing' and next_look_at <= (select db_clock())
        and (lease_until is null or lease_until <= (select db_clock()))
      order by next_look_at limit $1 for update skip locked)
    update orders o set looks = o.looks + 1, lease_until = t.until, next_look_at = t.until
    from due, (select db_clock() + make_interval(secs => $2) as until) t
    where o.organization_id = due.organization_id and o.order_id = due.order_id
    returning ${ORDER_COLUMNS}`,
}

/** The orders that a provider knows by these keys, of any organization. */
export async function findByProviderKeys(query: Query, keys: string[]): Promise<Order[]> {
  return query<Order>(`select ${ORDER_COLUMNS} from orders o where o.provider_key = any($1)`, [keys])
}

/** Takes one order in progress, due or not, unless somebody holds it. */
export async function take(db: Db, order: Order, leaseMs: number): Promise<Order | undefined> {
  const [taken] = await db.query<Order>(TAKE, [order.organization_id, order.order_id, leaseMs / 1000])
  return taken
}

const TAKE = `
  update orders o set looks = o.looks + 1, lease_until = t.until, next_look_at = t.until
  from (select db_clock() + make_interval(secs => $3) as until) t
  where o.organization_id = $1 and o.order_id = $2 and o.status = 'processing'
    and (o.lease_until is null or o.lease_until <= (select db_clock()))
  returning ${ORDER_COLUMNS}`

/** Orders that succeeded at a provider since an instant. */
export async function findSucceededSince(query: Query, psp: string, since: string): Promise<Order[]> {
  return query<Order>(
    `select ${ORDER_COLUMNS} from orders o where o.psp = $1 and o.status = 'succeeded' and o.settled_at >= $2`,
    [psp, since],
  )
}

/** What names an order's charge at the provider. */
export function reference(order: Order): Reference {
  const { provider_key, order_id, psp_merchant_id, region } = order
  return { key: provider_key, reference: order_id, merchantId: psp_merchant_id ?? '', region, handle: null }
}

/** Finds an order by its id alone, for operators. */
export async function findOrder(query: Query, orderId: string): Promise<Order | undefined> {
  const [order] = await query<Order>(`select ${ORDER_COLUMNS} from orders o where o.order_id = $1`, [orderId])
  return order
}

/** How many charges are in progress, and when the oldest of them began: for metrics and `doctor`. */
export async function inProgress(db: Db): Promise<{ count: number; oldest: string | null }> {
  const [row] = await db.query<NamedRow>(
    `select count(*) as count, min(created_at) as oldest from orders where status = 'processing'`,
  )
  return { count: Number(row!.count), oldest: row!.oldest! }
}
