// Claims refunds: reads the order under its lock, judges the rules by what holds then, and makes the refund.
import type { Transaction } from '../../../core/audit/audit.ts'
import { beingMoved, isClosed } from '../../../core/tenants/leaving.ts'
import { makeUuid } from '../../../lib/ids.ts'
import type { Db } from '../../../lib/pg/db.ts'
import { endWhenStalled } from '../../../lib/pg/stalled.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import { lockOutErasure } from '../lock-out-erasure.ts'
import type { RefundRequest } from './request.ts'
import { findByKey, nthRefundKey, REFUND_COLUMNS, type Refund, refundFrom, refundKey } from './row.ts'
import { allow, findRefundable, type Refundable } from './rules.ts'

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
  const [made] = await query(INSERT, [
    ...[organizationId, makeUuid(), orderId, externalId, idempotencyKey, amount, request.amount !== undefined],
    ...[order.currency_code, isSoft, reason, comment, key, leaseMs / 1000],
  ])
  return made && refundFrom(made)
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
