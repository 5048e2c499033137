// Refunds, each of an order: find, claim, hand over to settling, take what is due. Settling is in refund-settlement.ts.

import type { Transaction } from '../../audit/audit.ts'
import { ApiError } from '../../lib/errors.ts'
import { makeUuid } from '../../lib/ids.ts'
import { formatMinor, toMinor, tooManyDecimals } from '../../lib/money.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Query, Statement } from '../../lib/pg/types.ts'
import type { RefundReference } from '../../providers/provider.ts'
import { minorFromDatabase } from '../amount.ts'
import { nthRefundKey, refundKey } from '../keys.ts'
import { pauseSeconds } from '../unknown/lease.ts'
import type { RefundRequest } from './request.ts'

export type RefundStatus = 'processing' | 'succeeded' | 'failed'

/** A refund as its row says, with what its order says. */
export type Refund = {
  organization_id: string
  refund_id: string
  order_id: string
  external_id: string
  amount: string
  amount_given: 't' | 'f'
  currency_code: string
  soft_refund: 't' | 'f'
  status: RefundStatus
  provider_key: string
  looks: string
  project_id: string
  psp: string
  psp_merchant_id: string | null
  region: string | null
  amount_refunded: string
  consumable_revoked: 't' | 'f'
  /** What the provider calls the charge; null when an operator settled it by hand. */
  charge_transaction_id: string | null
}

/** Of a refund `r` and its order `o`. */
export const REFUND_COLUMNS = `r.organization_id, r.refund_id, r.order_id, r.external_id, r.amount, r.amount_given,
  r.currency_code, r.soft_refund, r.status, r.provider_key, r.looks,
  o.project_id, o.psp, o.psp_merchant_id, o.region, o.amount_refunded,
  (select psp_transaction_id from report_transactions t where t.organization_id = o.organization_id
    and t.order_id = o.order_id and t.psp_transaction_type = 'sale' and t.status = 'succeeded' limit 1) as charge_transaction_id,
  exists (select from consumables c where c.organization_id = o.organization_id and c.order_id = o.order_id
    and not c.is_active) as consumable_revoked`

/** The refund that this key of this customer stands for already. */
export async function findByKey(
  query: Query,
  organizationId: string,
  { externalId, idempotencyKey }: Pick<RefundRequest, 'externalId' | 'idempotencyKey'>,
): Promise<Refund | undefined> {
  if (idempotencyKey === null) return undefined
  const [refund] = await query<Refund>(FIND_BY_KEY, [organizationId, externalId, idempotencyKey])
  return refund
}

const FIND_BY_KEY: Statement = {
  name: 'find refund by key',
  text: `select ${REFUND_COLUMNS} from refunds r join orders o using (organization_id, order_id)
         where r.organization_id = $1 and r.external_id = $2 and r.idempotency_key = $3`,
}

/** What stands before a refund. */
export type Refundable = {
  psp_merchant_id: string | null
  status: string
  amount: string
  currency_code: string
  amount_refunded: string
  psp: string
  in_progress: 't' | 'f'
  refunds: string
  /** What the provider calls the charge; null when an operator settled it by hand. */
  charge_transaction_id: string | null
}

export async function findRefundable(
  query: Query,
  organizationId: string,
  { orderId, externalId }: RefundRequest,
): Promise<Refundable> {
  const [order] = await query<Refundable>(FIND_REFUNDABLE, [organizationId, orderId, externalId])
  if (order) return order
  const [imported] = await query(FIND_IMPORTED, [organizationId, orderId, externalId])
  if (imported)
    throw new ApiError(
      400,
      'order_not_charged_here',
      `The order "${orderId}" was not charged through Tundish: refund it where it was.`,
    )
  throw new ApiError(400, 'unknown_order', `The customer has no order "${orderId}".`)
}

const FIND_REFUNDABLE: Statement = {
  name: 'find refundable',
  text: `
    select o.status, o.amount, o.currency_code, o.amount_refunded, o.psp, o.psp_merchant_id,
      exists (select from refunds r where r.organization_id = $1 and r.order_id = $2 and r.status = 'processing')
        as in_progress,
      (select count(*) from refunds r where r.organization_id = $1 and r.order_id = $2) as refunds,
      (select psp_transaction_id from report_transactions t where t.organization_id = $1 and t.order_id = $2
        and t.psp_transaction_type = 'sale' and t.status = 'succeeded' limit 1) as charge_transaction_id
    from orders o where o.organization_id = $1 and o.order_id = $2 and o.external_id = $3`,
}

const FIND_IMPORTED: Statement = {
  name: 'find imported payment',
  text: 'select 1 from report_transactions where organization_id = $1 and order_id = $2 and external_id = $3 limit 1',
}

/** The amount to pay back, in major units with all decimals, and of which charge; or a 400 for what the order does not allow. */
export function allow(order: Refundable, { amount, orderId }: RefundRequest) {
  const { currency_code } = order
  if (order.status !== 'succeeded')
    throw new ApiError(400, 'order_not_succeeded', `The order "${orderId}" is ${order.status}, not succeeded.`)
  const minor = amount && toMinor(amount, currency_code)
  if (amount && minor === undefined)
    throw new ApiError(400, 'amount_too_many_decimals', `amount ${tooManyDecimals(currency_code)}.`)
  const left = minorFromDatabase(order.amount, currency_code) - minorFromDatabase(order.amount_refunded, currency_code)
  if (left === 0n)
    throw new ApiError(400, 'nothing_left_to_refund', 'The charge is paid back already: nothing is left of it.')
  if ((minor ?? 0n) > left) {
    throw new ApiError(
      400,
      'amount_above_what_is_left',
      `amount is above what is left of the charge: ${formatMinor(left, currency_code)} ${currency_code}.`,
    )
  }
  if (order.in_progress === 't')
    throw new ApiError(400, 'refund_in_progress', 'Another refund of this order is in progress.')
  if (order.charge_transaction_id === null) {
    throw new ApiError(
      400,
      'charge_reference_unknown',
      'The provider’s name of this charge is not known: refund it at the provider.',
    )
  }
  return { amount: formatMinor(minor ?? left, currency_code), chargeTransactionId: order.charge_transaction_id }
}

export type Claim =
  | { outcome: 'claimed'; refund: Refund; chargeTransactionId: string }
  | { outcome: 'known'; refund: Refund }

/**
 * Makes the refund, which is the right to pay back. The order is locked, so that the rules are judged by what holds then;
 * only a key that another order's refund takes at this moment is left to the database. Throws a 400.
 */
export async function claim(
  db: Db,
  organizationId: string,
  request: RefundRequest,
  leaseMs: number,
  onClaim: (transaction: Transaction, refund: Refund) => Promise<void>,
): Promise<Claim> {
  return db.tx(async (query, commit) => {
    await query('select 1 from orders where organization_id = $1 and order_id = $2 for no key update', [
      organizationId,
      request.orderId,
    ])
    const known = await findByKey(query, organizationId, request)
    if (known) return { outcome: 'known', refund: known }
    const order = await findRefundable(query, organizationId, request)
    const allowed = allow(order, request)
    const refund = await insert(query, organizationId, request, order, allowed.amount, leaseMs)
    if (refund) {
      await onClaim({ query, commit }, refund)
      return { outcome: 'claimed', refund, chargeTransactionId: allowed.chargeTransactionId }
    }
    const winner = await findByKey(query, organizationId, request)
    if (!winner) throw new Error('Bug: a refund was not made, and none is in its way')
    return { outcome: 'known', refund: winner }
  })
}

async function insert(
  query: Query,
  organizationId: string,
  request: RefundRequest,
  order: Refundable,
  amount: string,
  leaseMs: number,
): Promise<Refund | undefined> {
  const { orderId, externalId, idempotencyKey, isSoft, reason, comment } = request
  const key =
    idempotencyKey === null
      ? nthRefundKey(organizationId, orderId, Number(order.refunds))
      : refundKey(organizationId, externalId, idempotencyKey)
  const [refund] = await query<Refund>(INSERT, [
    organizationId,
    makeUuid(),
    orderId,
    externalId,
    idempotencyKey,
    amount,
    request.amount !== undefined,
    order.currency_code,
    isSoft,
    reason,
    comment,
    key,
    leaseMs / 1000,
  ])
  return refund
}

const INSERT: Statement = {
  name: 'insert refund',
  text: `
    with r as (
      insert into refunds (organization_id, refund_id, order_id, external_id, idempotency_key, amount, amount_given,
        currency_code, soft_refund, reason, comment, provider_key, created_at, lease_until, next_look_at)
      select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
        t.now, t.now + make_interval(secs => $13), t.now + make_interval(secs => $13)
      from (select db_clock() as now) t
      on conflict do nothing returning *)
    select ${REFUND_COLUMNS} from r join orders o using (organization_id, order_id)`,
}

/** Gives the refund up to settling: its outcome is unknown, and its holder will do nothing more about it. */
export async function handOver(db: Db, refund: Refund): Promise<void> {
  const { organization_id, refund_id, looks } = refund
  await db.query(HAND_OVER, [organization_id, refund_id, looks, pauseSeconds(Number(looks))])
}

const HAND_OVER: Statement = {
  name: 'hand over refund',
  text: `update refunds set lease_until = null, next_look_at = db_clock() + make_interval(secs => $4)
         where organization_id = $1 and refund_id = $2 and looks = $3 and status = 'processing'`,
}

/** Takes up to `limit` refunds that are due, of any organization, for as long as the lease. */
export async function takeDue(db: Db, limit: number, leaseMs: number): Promise<Refund[]> {
  return db.query<Refund>(TAKE_DUE, [limit, leaseMs / 1000])
}

const TAKE_DUE: Statement = {
  name: 'take due refunds',
  text: `
    with due as (
      select organization_id, refund_id from refunds
      where status = 'processing' and next_look_at <= (select db_clock())
        and (lease_until is null or lease_until <= (select db_clock()))
      order by next_look_at limit $1 for update skip locked)
    update refunds r set looks = r.looks + 1, lease_until = t.until, next_look_at = t.until
    from due, (select db_clock() + make_interval(secs => $2) as until) t, orders o
    where r.organization_id = due.organization_id and r.refund_id = due.refund_id
      and o.organization_id = r.organization_id and o.order_id = r.order_id
    returning ${REFUND_COLUMNS}`,
}

/** The refunds that a provider knows by these keys, of any organization. */
export async function findByProviderKeys(query: Query, keys: string[]): Promise<Refund[]> {
  return query<Refund>(
    `select ${REFUND_COLUMNS} from refunds r join orders o using (organization_id, order_id)
     where r.provider_key = any($1)`,
    [keys],
  )
}

/** Takes one refund in progress, due or not, unless somebody holds it. */
export async function take(db: Db, refund: Refund, leaseMs: number): Promise<Refund | undefined> {
  const [taken] = await db.query<Refund>(TAKE, [refund.organization_id, refund.refund_id, leaseMs / 1000])
  return taken
}

const TAKE = `
  update refunds r set looks = r.looks + 1, lease_until = t.until, next_look_at = t.until
  from (select db_clock() + make_interval(secs => $3) as until) t, orders o
  where r.organization_id = $1 and r.refund_id = $2 and r.status = 'processing'
    and o.organization_id = r.organization_id and o.order_id = r.order_id
    and (r.lease_until is null or r.lease_until <= (select db_clock()))
  returning ${REFUND_COLUMNS}`

/** Finds a refund by its id alone, for operators. */
export async function findRefund(query: Query, refundId: string): Promise<Refund | undefined> {
  const [refund] = await query<Refund>(
    `select ${REFUND_COLUMNS} from refunds r join orders o using (organization_id, order_id) where r.refund_id = $1`,
    [refundId],
  )
  return refund
}

/** Refunds that succeeded at a provider since an instant. */
export async function findSucceededSince(query: Query, psp: string, since: string): Promise<Refund[]> {
  return query<Refund>(
    `select ${REFUND_COLUMNS} from refunds r join orders o using (organization_id, order_id)
     where o.psp = $1 and r.status = 'succeeded' and r.settled_at >= $2`,
    [psp, since],
  )
}

/** What names a refund at the provider. */
export function reference(refund: Refund): RefundReference {
  const { provider_key, refund_id, psp_merchant_id, region } = refund
  const chargeTransactionId = refund.charge_transaction_id ?? ''
  return {
    chargeTransactionId,
    key: provider_key,
    reference: refund_id,
    merchantId: psp_merchant_id ?? '',
    region,
    handle: null,
  }
}
