// Claims refunds: reads the order under its lock, judges the rules by what holds then, and makes the refund.
import type { Transaction } from '../../../core/audit/audit.ts'
import { beingMoved, isClosed } from '../../../core/tenants/leaving.ts'
import { ApiError } from '../../../lib/errors.ts'
import { makeUuid } from '../../../lib/ids.ts'
import { formatMinor, toMinor, tooManyDecimals } from '../../../lib/money.ts'
import type { Db } from '../../../lib/pg/db.ts'
import { endWhenStalled } from '../../../lib/pg/stalled.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import { minorFromDatabase } from '../amount.ts'
import { amountRefused } from '../body.ts'
import { lockOutErasure } from '../lock-out-erasure.ts'
import { nthRefundKey, refundKey } from '../movement/keys.ts'
import { hasUnlisted } from '../movement/unlisted.ts'
import type { RefundRequest } from './request.ts'
import { findByKey, REFUND_COLUMNS, type Refund } from './row.ts'

/** The columns of the order to refund that the rules need. */
export type Refundable = {
  status: string
  amount: string
  currency_code: string
  amount_refunded: string
  psp: string
  psp_merchant_id: string | null
  in_progress: 't' | 'f'
  /** The provider's id of the charge; null when an operator settled the charge. */
  charge_transaction_id: string | null
  /** Whether the provider may have refunds of the charge that were lost here. */
  may_lack_refunds: 't' | 'f'
}

/** The order, if it is this customer's and was charged here. Throws a 400. */
export async function findRefundable(
  query: Query,
  organizationId: string,
  { orderId, externalId }: RefundRequest,
): Promise<Refundable> {
  const [order] = await query<Refundable>(FIND_REFUNDABLE, [organizationId, orderId, externalId])
  if (order) return order
  const [imported] = await query(FIND_IMPORTED, [organizationId, orderId, externalId])
  if (imported) {
    throw new ApiError(
      400,
      'order_not_charged_here',
      `The order "${orderId}" was not charged through Tundish: refund it where it was charged.`,
    )
  }
  throw new ApiError(400, 'unknown_order', `The customer has no order "${orderId}".`)
}

const FIND_REFUNDABLE: Statement = {
  name: 'find refundable',
  text: `
    select o.status, o.amount, o.currency_code, o.amount_refunded, o.psp, o.psp_merchant_id, o.charge_transaction_id,
      exists (select from refunds r where r.organization_id = $1 and r.order_id = $2 and r.status = 'processing')
        as in_progress,
      ${hasUnlisted('o.organization_id')} or exists (select from lost_movements l where l.organization_id = $1
        and l.type = 'refund' and l.charge_transaction_id = o.charge_transaction_id
        and not exists (select from refunds r where r.organization_id = $1 and r.order_id = $2
          and (r.provider_transaction_id = l.transaction_id or r.provider_key = l.provider_key))) as may_lack_refunds
    from orders o where o.organization_id = $1 and o.order_id = $2 and o.external_id = $3`,
}

const FIND_IMPORTED: Statement = {
  name: 'find imported payment',
  text: 'select 1 from report_transactions where organization_id = $1 and order_id = $2 and external_id = $3 limit 1',
}

/** The amount to pay back, in major units with all decimals. Throws a 400 for the first rule that is broken. */
export function allow(order: Refundable, { amount, amountSent, orderId, isSoft }: RefundRequest): string {
  const { currency_code } = order
  const refuse = (code: string, sentence: string) => new ApiError(400, code, sentence)
  if (order.status !== 'succeeded')
    throw refuse(
      'order_not_succeeded',
      `Only a charge that succeeded can be refunded: order "${orderId}" is ${order.status}.`,
    )
  const minor = amount && toMinor(amount, currency_code)
  if (amount && minor === undefined)
    throw amountRefused('amount_too_many_decimals', tooManyDecimals(currency_code), amountSent)
  const left = minorFromDatabase(order.amount, currency_code) - minorFromDatabase(order.amount_refunded, currency_code)
  if (left === 0n)
    throw refuse('nothing_left_to_refund', 'Nothing is left to refund: the whole charge was refunded before.')
  if ((minor ?? 0n) > left) {
    const most = `${formatMinor(left, currency_code)} ${currency_code}`
    throw amountRefused('amount_above_what_is_left', `must be at most ${most}, what is left of the charge`, amountSent)
  }
  if (order.in_progress === 't') throw refuse('refund_in_progress', 'Another refund of this order is in progress.')
  if (order.charge_transaction_id === null && !isSoft) {
    throw refuse(
      'charge_reference_unknown',
      'The provider’s id of this charge is not known: refund it at the provider.',
    )
  }
  return formatMinor(minor ?? left, currency_code)
}

/** Runs last in the claim's transaction, for what has to be written with every refund that is begun; may commit it. */
export type OnClaim = (transaction: Transaction, refund: Refund) => Promise<void>

/**
 * Makes the refund, which is the right to pay back; `isNew` is false if the key has a refund already. The order is locked, so
 * that the rules are judged by its present state. Only against a refund of another order that takes the same key at this moment
 * the unique index decides. Throws a 400.
 */
export async function claim(
  db: Db,
  organizationId: string,
  request: RefundRequest,
  leaseMs: number,
  onClaim: OnClaim,
): Promise<{ refund: Refund; isNew: boolean }> {
  return db.tx(async (query, commit) => {
    const [, , , [closed]] = await Promise.all([
      endWhenStalled(query),
      hasNotes(request) && lockOutErasure(query, [{ organizationId, externalId: request.externalId }]),
      query(LOCK_ORDER, [organizationId, request.orderId]),
      query(CLOSED, [organizationId]),
    ])
    if (closed) throw beingMoved()
    const known = await findByKey(query, organizationId, request)
    if (known) return { refund: known, isNew: false }
    const order = await findRefundable(query, organizationId, request)
    const amount = allow(order, request)
    const refund = await insert(query, organizationId, request, order, amount, leaseMs)
    if (refund) {
      await onClaim({ query, commit }, refund)
      return { refund, isNew: true }
    }
    const winner = await findByKey(query, organizationId, request)
    if (!winner) throw new Error('Bug: a refund was not made, and none is in its way')
    return { refund: winner, isNew: false }
  })
}

/** Reason and comment may hold personal data. */
const hasNotes = ({ reason, comment }: RefundRequest) => reason !== '' || comment !== ''

const LOCK_ORDER: Statement = {
  name: 'lock order for refund',
  text: 'select 1 from orders where organization_id = $1 and order_id = $2 for no key update',
}

// In a statement after the lock, for which it may have waited until the organization was gone.
const CLOSED: Statement = {
  name: 'closed organization',
  text: `select 1 where ${isClosed('$1')} or not exists (select from organizations where id = $1)`,
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
      ? await nextRefundKey(query, organizationId, orderId)
      : refundKey(organizationId, externalId, idempotencyKey)
  const [refund] = await query<Refund>(INSERT, [
    ...[organizationId, makeUuid(), orderId, externalId, idempotencyKey, amount, request.amount !== undefined],
    ...[order.currency_code, isSoft, reason, comment, key, leaseMs / 1000],
  ])
  return refund
}

/**
 * The provider's key of a refund without a key of the caller's, by the number of refunds before it, of any status. After a restored backup an
 * adopted refund may have this key already, because it has a higher number than there are refunds here.
 */
async function nextRefundKey(query: Query, organizationId: string, orderId: string): Promise<string> {
  const rows = await query<{ provider_key: string }>(KEYS_OF_ORDER, [organizationId, orderId])
  const taken = new Set(rows.map(({ provider_key }) => provider_key))
  let n = rows.length
  while (taken.has(nthRefundKey(organizationId, orderId, n))) n++
  return nthRefundKey(organizationId, orderId, n)
}

const KEYS_OF_ORDER: Statement = {
  name: 'find keys of refunds',
  text: 'select provider_key from refunds where organization_id = $1 and order_id = $2',
}

// Reason and comment of a customer whose profile is erased are not stored.
const INSERT: Statement = {
  name: 'insert refund',
  text: `
    with r as (
      insert into refunds (organization_id, refund_id, order_id, external_id, idempotency_key, amount, amount_given,
        currency_code, soft_refund, reason, comment, provider_key, created_at, lease_until, next_look_at)
      select $1, $2, $3, $4, $5, $6, $7, $8, $9, case when erased.profile then '' else $10 end,
        case when erased.profile then '' else $11 end, $12,
        t.now, t.now + make_interval(secs => $13), t.now + make_interval(secs => $13)
      from (select db_clock() as now) t, (
        select exists (select from customers c join profiles p on p.project_id = c.project_id and p.id = c.profile_id
          where c.organization_id = $1 and c.external_id = $4 and p.anonymized_at is not null) as profile) erased
      on conflict do nothing returning *)
    select ${REFUND_COLUMNS} from r join orders o using (organization_id, order_id)`,
}
