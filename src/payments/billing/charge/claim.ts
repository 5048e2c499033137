// Claims charges: one statement judges the rules of each and makes the orders of those that break none.

import { beingMoved, isClosed } from '../../../core/tenants/leaving.ts'
import { batched, type LockTimeout } from '../../../lib/batching.ts'
import type { Clock } from '../../../lib/clock.ts'
import { makeUuid } from '../../../lib/ids.ts'
import type { Db } from '../../../lib/pg/db.ts'
import { onGivenRows } from '../../../lib/pg/given-rows.ts'
import { limitWaits } from '../../../lib/pg/lock-timeout.ts'
import { rowReader } from '../../../lib/pg/row-reader.ts'
import type { NamedRow, Query } from '../../../lib/pg/types.ts'
import { maximumOf } from '../amount.ts'
import { lockOutErasure } from '../lock-out-erasure.ts'
import { mayHaveCharged, unlistedOf } from '../movement/unlisted.ts'
import { CAP, type Capped, COUNTED, HAS_CAPS, hasCaps, lockCounters, sumsBefore } from './caps.ts'
import type { ChargeRequest } from './request.ts'
import { chargeKey, chargeLanes, ORDER_COLUMNS, type Order, orderFrom } from './row.ts'
import type { Refusal } from './rules.ts'
import { paymentsOf, savedCardOf } from './saved-card.ts'

/** A merchant account; the id `*` is that of payments that name none. */
export interface Account {
  psp: string
  merchant_id: string
}

export interface Ask {
  organizationId: string
  request: ChargeRequest
  /** Major units with all decimals of the currency; null when no charge can have the amount. */
  amount: string | null
  /** The merchant accounts that take this charge now. */
  ready: readonly Account[]
  leaseMs: number
  clock: Clock
}

/** The order of the key. */
export interface Claimed {
  order: Order
  /** Whether it was made now; its lease then counts from `sentMs` of the monotonic clock at the earliest. */
  isNew: boolean
  sentMs: number
  /** Whether the provider has charged under the key before, by an order that was lost: the order has that payment's handle. */
  isLost: boolean
}

/**
 * Makes the order, which is the right to charge, if no rule is broken: at most one for the key, and one in progress for
 * the customer, both ensured by the database. If the key has an order already, that is returned, and no rule is judged.
 */
export async function claim(db: Db, ask: Ask): Promise<Claimed | { order: undefined; refusal: Refusal }> {
  const { row, sentMs } = await claimTogether(db, ask)
  const { order_id, asked_id, lost_id } = row
  if (order_id !== null)
    return {
      order: orderFrom(row),
      isNew: order_id === asked_id,
      sentMs,
      isLost: order_id === asked_id && lost_id !== null,
    }
  const refusal = claimedFrom(row)
  // Its key was valid when the request began, and its body may have taken long.
  if (!refusal.is_known) throw beingMoved()
  return { order: undefined, refusal }
}

/** A row of the claim: the columns of the order of the key are null if there is none. */
type Row = NamedRow & { asked_id: string; lost_id: string | null; order_id: string | null }

const claimedFrom = rowReader<Refusal & { is_known: boolean }>({ is_known: 'boolean', is_busy: 'boolean' })

const claimTogether = batched<Ask, { row: Row; sentMs: number }>({
  tenant: ({ organizationId }) => organizationId,
  lanes: chargeLanes,
  async work(db, asks, lockTimeout) {
    // The time of the statement, not of the request, which may have waited long for its turn.
    const sentMs = asks.map(({ clock }) => clock.monotonicMs())
    const ids = asks.map(() => makeUuid())
    const rows = await send(db, asks, ids, lockTimeout)
    const found = new Map(rows.map((row) => [row.asked_id, row]))
    return ids.map((id, n) => ({ row: found.get(id)!, sentMs: sentMs[n]! }))
  },
})

async function send(db: Db, asks: Ask[], ids: string[], lockTimeout: LockTimeout): Promise<Row[]> {
  const before = sumsBefore(asks.map(cappedOf))
  const rows = asks.map((ask, n) => ({
    ...rowOf(ask, ids[n]!),
    is_locked: String(hasCaps(db, ask.organizationId)),
    ...before[n]!,
  }))
  const run = (query: Query) => query<Row>(...CLAIM(rows, lockTimeout))
  const personal = asks
    .filter(({ request }) => request.clientMetadata !== null)
    .map(({ organizationId, request }) => ({ organizationId, externalId: request.externalId }))
  const capped = asks.filter(({ organizationId }) => hasCaps(db, organizationId)).map(cappedOf)
  if (personal.length === 0 && capped.length === 0) return run(db.query)
  return db.tx(async (query, commit) => {
    const locked = Promise.all([
      personal.length > 0 && lockOutErasure(query, personal, lockTimeout),
      capped.length > 0 && lockCounters(query, capped, lockTimeout),
    ])
    const claimed = run(query)
    commit()
    const [rows] = await Promise.all([claimed, locked])
    return rows
  })
}

const cappedOf = ({ organizationId, request, amount }: Ask): Capped => ({
  organizationId,
  externalId: request.externalId,
  currencyCode: request.currencyCode,
  amount,
})

function rowOf({ organizationId, request, amount, leaseMs, ready }: Ask, id: string) {
  const { externalId, idempotencyKey, currencyCode, clientMetadata, grants } = request
  return {
    asked_id: id,
    organization_id: organizationId,
    external_id: externalId,
    idempotency_key: idempotencyKey,
    amount,
    currency_code: currencyCode,
    client_metadata: clientMetadata,
    grants,
    provider_key: chargeKey(organizationId, externalId, idempotencyKey),
    lease_s: String(leaseMs / 1000),
    ready: JSON.stringify(ready),
  }
}

const MAXIMUM = maximumOf('g', 'a.currency_code')

const READY = `a.ready::jsonb @> jsonb_build_array(
  jsonb_build_object('psp', card.psp, 'merchant_id', coalesce(card.psp_merchant_id, '*')))`

// The first of these that holds is the rule that is broken. A key that was charged by an order that was lost is not charged, so it
// needs no card. A merchant account that is not described, or that names no currencies, offers all.
const BROKEN_RULE = `case
  when not g.one_off_charge_enabled then 'one_off_charge_disabled'
  when a.amount is null then 'amount_refused'
  when a.amount > ${MAXIMUM}::numeric then 'amount_above_maximum'
  when lost.transaction_id is null and ${mayHaveCharged('a.organization_id')} then 'restore_not_reconciled'
  when c.project_id is null then 'unknown_customer'
  when lost.transaction_id is not null then null
  when not a.is_locked and ${HAS_CAPS} then 'caps_not_locked'
  when cap.cap_alone then 'charge_cap_reached'
  when not cap.cap_alone then 'cap_contended'
  when card.trx_id is null then
    case when (select true ${paymentsOf('a')} limit 1) is not null then 'no_saved_card' else 'no_successful_payment' end
  when coalesce(json_array_length(m.currencies), 0) > 0 and not m.currencies::jsonb ? a.currency_code
    then 'currency_not_offered'
  when not ${READY} then 'provider_not_ready' end`

// Sorted, so that two processes that claim for the same customers wait for each other without a deadlock. The subqueries have
// `limit 1`, because `exists` could be planned as one reading of all orders in progress.
const CLAIM = onGivenRows(
  'claim orders',
  {
    asked_id: 'uuid',
    organization_id: 'text',
    external_id: 'text',
    idempotency_key: 'text',
    amount: 'numeric',
    currency_code: 'text',
    client_metadata: 'text',
    grants: 'text',
    provider_key: 'text',
    lease_s: 'float',
    ready: 'text',
    is_locked: 'boolean',
    charges_before: 'int',
    money_before: 'numeric',
  },
  (rows) => `
    with ${limitWaits('$1')}, now as materialized (select db_clock() as at from limited), judged as materialized (
      select a.*, g.id is not null as is_known,
        ${MAXIMUM} as maximum, c.project_id, c.profile_id, lost.transaction_id as lost_id, lost.order_id as adopted_id,
        card.trx_id, card.payment_method_token, card.psp_customer_id, coalesce(lost.psp, card.psp) as psp,
        case when lost.psp is null then card.psp_merchant_id else lost.psp_merchant_id end as psp_merchant_id,
        case when lost.psp is null then card.region else lost.region end as region,
        cap.*, ${BROKEN_RULE} as broken_rule
      from ${rows}
      left join organizations g on g.id = a.organization_id and not ${isClosed('a.organization_id')}
      left join customers c on c.organization_id = a.organization_id and c.external_id = a.external_id
      left join lateral (
        select r.trx_id, r.psp, r.psp_merchant_id, r.region, r.payment_method_token, r.psp_customer_id
        ${savedCardOf('a', 'c')}) card on true
      left join lateral (
        select l.transaction_id, l.order_id, l.psp, l.psp_merchant_id, account.region from lost_movements l
        left join merchant_accounts account on account.organization_id = l.organization_id and account.psp = l.psp
          and account.psp_merchant_id = l.psp_merchant_id
        where l.organization_id = a.organization_id and l.provider_key = a.provider_key and l.type = 'charge'
        order by l.state = 'failed', l.moved_at limit 1) lost on true
      left join merchant_accounts m on m.organization_id = a.organization_id and m.psp = card.psp
        and m.psp_merchant_id = card.psp_merchant_id${CAP}
    ), made as (
      insert into orders as o (organization_id, order_id, external_id, project_id, idempotency_key, amount, currency_code,
        client_metadata, grants, psp, psp_merchant_id, region, payment_method_token, provider_customer, source_trx_id, provider_key,
        provider_handle, is_counted, created_at, lease_until, next_look_at)
      select a.organization_id, a.asked_id, a.external_id, a.project_id, a.idempotency_key, a.amount, a.currency_code,
        case when a.client_metadata is not null and (select p.anonymized_at from profiles p
            where p.project_id = a.project_id and p.id = a.profile_id) is null
          then a.client_metadata::json end,
        a.grants::json,
        a.psp, a.psp_merchant_id, a.region, case when a.lost_id is null then a.payment_method_token else '' end,
        case when a.lost_id is null then a.psp_customer_id end, coalesce(a.trx_id, a.asked_id), a.provider_key, a.lost_id,
        a.is_locked and a.lost_id is null, now.at, now.at + make_interval(secs => a.lease_s), now.at + make_interval(secs => a.lease_s)
      from judged a, now
      where a.is_known and a.broken_rule is null and a.adopted_id is null
      order by a.organization_id, a.external_id, a.idempotency_key
      on conflict do nothing returning ${ORDER_COLUMNS}
    ), ${COUNTED}, known as (
      select order_id as wanted_id, * from made
      union all
      select a.asked_id as wanted_id, ${ORDER_COLUMNS} from judged a join orders o on o.organization_id = a.organization_id
        and o.external_id = a.external_id and o.idempotency_key = a.idempotency_key
      union all
      select a.asked_id as wanted_id, ${ORDER_COLUMNS} from judged a join orders o on o.organization_id = a.organization_id
        and o.order_id = a.adopted_id
    )
    select a.asked_id, a.is_known, a.lost_id, a.maximum, a.psp as card_psp, a.psp_merchant_id as card_psp_merchant_id,
      coalesce(a.broken_rule, case when busy.is_busy then 'charge_in_progress' end) as rule, busy.is_busy,
      case when a.broken_rule = 'restore_not_reconciled' then ${unlistedOf('a.organization_id')} end as unlisted,
      a.cap_scope, a.cap_per, a.cap_currency, a.cap_most, k.*
    from judged a left join known k on k.wanted_id = a.asked_id
    cross join lateral (select k.order_id is null and (select true from orders o
      where o.organization_id = a.organization_id and o.external_id = a.external_id and o.status = 'processing' limit 1)
      is not null as is_busy) busy`,
  1,
)
