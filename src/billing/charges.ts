// Orders, one a custom charge: find, claim, hand over to settling, take what is due. Settling is in charge-settlement.ts.
import type { Db, NamedRow, Query, Statement } from '../lib/db.ts'
import { makeUuid } from '../lib/ids.ts'
import type { Reference } from '../providers/provider.ts'
import type { ChargeRequest } from './charge-request.ts'
import { chargeKey } from './keys.ts'
import { pauseSeconds } from './lease.ts'

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

/** What stands before a charge: the organization's rules, and of the customer what there is. */
export type Standing = {
  one_off_charge_enabled: 't' | 'f'
  one_off_charge_max_amount: string
  /** Null: there is no such customer. */
  project_id: string | null
  profile_id: string | null
  has_payment: 't' | 'f'
  /** The saved card, that of the latest successful payment that has one; null: none. */
  payment_method_token: string | null
  source_trx_id: string | null
  psp: string | null
  psp_merchant_id: string | null
  region: string | null
  /** JSON; null: nothing is known of the merchant account. */
  currencies: string | null
}

/** The order that this key of this customer stands for already. */
export async function findByKey(
  query: Query,
  organizationId: string,
  { externalId, idempotencyKey }: Pick<ChargeRequest, 'externalId' | 'idempotencyKey'>,
): Promise<Order | undefined> {
  const [order] = await query<Order>(FIND_BY_KEY, [organizationId, externalId, idempotencyKey])
  return order
}

const FIND_BY_KEY: Statement = {
  name: 'find order by key',
  text: `select ${ORDER_COLUMNS} from orders o
         where o.organization_id = $1 and o.external_id = $2 and o.idempotency_key = $3`,
}

export async function readStanding(db: Db, organizationId: string, externalId: string): Promise<Standing> {
  const [standing] = await db.query<Standing>(READ_STANDING, [organizationId, externalId])
  if (!standing) throw new Error('Bug: the organization of a living key does not exist')
  return standing
}

const PAYMENTS = `from report_transactions r where r.organization_id = $1 and r.external_id = $2
  and r.psp_transaction_type = 'sale' and r.status = 'succeeded'`

const READ_STANDING: Statement = {
  name: 'read standing',
  text: `
    select g.one_off_charge_enabled, g.one_off_charge_max_amount, c.project_id, c.profile_id,
      exists (select ${PAYMENTS}) as has_payment,
      card.payment_method_token, card.trx_id as source_trx_id, card.psp, card.psp_merchant_id, card.region, m.currencies
    from organizations g
    left join customers c on c.organization_id = g.id and c.external_id = $2
    left join lateral (
      select r.trx_id, r.psp, r.psp_merchant_id, r.region, r.payment_method_token
      ${PAYMENTS} and r.payment_method_token is not null order by r.trx_created_at desc limit 1) card on true
    left join merchant_accounts m
      on m.organization_id = $1 and m.psp = card.psp and m.psp_merchant_id = card.psp_merchant_id
    where g.id = $1`,
}

/** A charge that everything allows: what its order will say. */
export interface Draft {
  organizationId: string
  request: ChargeRequest
  /** Major units with all decimals of the currency. */
  amount: string
  projectId: string
  profileId: string | null
  card: { psp: string; merchantId: string | null; region: string | null; token: string; sourceTrxId: string }
}

export type Claim = { outcome: 'claimed'; order: Order } | { outcome: 'known'; order: Order } | { outcome: 'busy' }

// Each further turn needs another charge of the same customer to begin and settle within two statements.
const MOST_TURNS = 20

/**
 * Makes the order, which is the right to charge: at most one for the key, and one in progress for the customer. The
 * database decides; when it says no, what won is read: an order with the same key, or one in progress. Neither may be
 * there when the winner settled in between; then it is tried again.
 */
export async function claim(db: Db, draft: Draft, leaseMs: number): Promise<Claim> {
  const { organizationId, request } = draft
  for (let turn = 1; turn <= MOST_TURNS; turn++) {
    const order = await insert(db, draft, leaseMs)
    if (order) return { outcome: 'claimed', order }
    const known = await findByKey(db.query, organizationId, request)
    if (known) return { outcome: 'known', order: known }
    const [busy] = await db.query(IN_PROGRESS, [organizationId, request.externalId])
    if (busy) return { outcome: 'busy' }
  }
  return { outcome: 'busy' }
}

async function insert(db: Db, draft: Draft, leaseMs: number): Promise<Order | undefined> {
  const { request, card, profileId } = draft
  const params = [
    draft.organizationId,
    makeUuid(),
    request.externalId,
    draft.projectId,
    request.idempotencyKey,
    draft.amount,
    request.currencyCode,
    request.clientMetadata,
    card.psp,
    card.merchantId,
    card.region,
    card.token,
    card.sourceTrxId,
    chargeKey(draft.organizationId, request.externalId, request.idempotencyKey),
    profileId,
    leaseMs / 1000,
  ]
  if (request.clientMetadata === null || profileId === null) return (await db.query<Order>(INSERT, params))[0]
  return db.tx(async (query) => {
    await keepErasureAway(query, draft.projectId, profileId)
    return (await query<Order>(INSERT, params))[0]
  })
}

/**
 * Whoever writes what may be personal data of a profile locks it first and looks in a later statement whether it is
 * erased. The lock is the weakest that keeps an erasure out: an import that is changing the profile does not block it.
 */
export async function keepErasureAway(query: Query, projectId: string, profileId: string): Promise<void> {
  await query('select 1 from profiles where project_id = $1 and id = $2 for key share', [projectId, profileId])
}

const INSERT: Statement = {
  name: 'insert order',
  text: `
    insert into orders as o (organization_id, order_id, external_id, project_id, idempotency_key, amount, currency_code,
      client_metadata, psp, psp_merchant_id, region, payment_method_token, source_trx_id, provider_key,
      created_at, lease_until, next_look_at)
    select $1, $2, $3, $4, $5, $6, $7,
      case when exists (select from profiles where project_id = $4 and id = $15 and anonymized_at is not null)
        then null else $8::json end,
      $9, $10, $11, $12, $13, $14, t.now, t.now + make_interval(secs => $16), t.now + make_interval(secs => $16)
    from (select db_clock() as now) t
    on conflict do nothing returning ${ORDER_COLUMNS}`,
}

const IN_PROGRESS: Statement = {
  name: 'find order in progress',
  text: `select 1 from orders where organization_id = $1 and external_id = $2 and status = 'processing'`,
}

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
  return { key: provider_key, reference: order_id, merchantId: psp_merchant_id ?? '', region }
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
