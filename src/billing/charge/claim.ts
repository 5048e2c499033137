// Claims charges: one statement reads what stands before them and makes the orders of those that the rules allow.

import { batched } from '../../lib/batching.ts'
import type { Clock } from '../../lib/clock.ts'
import { makeUuid } from '../../lib/ids.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Query, Statement } from '../../lib/pg/types.ts'
import { chargeKey } from '../keys.ts'
import { keepErasureAway } from '../lock-out-erasure.ts'
import { chargeLanes, ORDER_COLUMNS, type Order } from './orders.ts'
import type { ChargeRequest } from './request.ts'

/** A merchant account; the id `*` stands for every one of the psp. */
export interface Account {
  psp: string
  merchant_id: string
}

/** What is asked for: the right to charge. */
export interface Ask {
  organizationId: string
  request: ChargeRequest
  /** Major units with all decimals of the currency; null when it can be no charge's. */
  amount: string | null
  /** The merchant accounts that take a charge now. */
  ready: readonly Account[]
  leaseMs: number
  clock: Clock
}

/** What stands before a charge: the organization's rules, and of the customer what there is. */
export type Standing = {
  one_off_charge_enabled: 't' | 'f'
  one_off_charge_max_amount: string
  /** Null: there is no such customer. */
  customer_project_id: string | null
  has_payment: 't' | 'f'
  /** The saved card, that of the latest successful payment that has one; null: none. */
  card_token: string | null
  card_psp: string | null
  card_psp_merchant_id: string | null
  /** JSON; null: nothing is known of the merchant account. */
  currencies: string | null
  /** Whether the customer has a charge in progress. */
  is_busy: 't' | 'f'
}

/** The order that the key stands for; `isNew` when it was made now, with its lease counting from `sentMs` at the earliest. */
export type Claimed = { order: Order; isNew: boolean; sentMs: number }

/**
 * Makes the order, which is the right to charge, if the rules allow it: at most one for the key, and one in progress for
 * the customer. The database decides. When there is none, it answers what stands before it; if no rule forbids it, then
 * another charge of the customer began or settled meanwhile.
 */
export async function claim(db: Db, ask: Ask): Promise<Claimed | { order: undefined; standing: Standing }> {
  const { row, sentMs } = await claimTogether(db, ask)
  if (row.order_id !== null) return { order: row as Order, isNew: row.order_id === row.asked_id, sentMs }
  if (row.one_off_charge_enabled === null) throw new Error('Bug: the organization of a living key does not exist')
  return { order: undefined, standing: row as Standing }
}

type Row = { asked_id: string } & (Order | { order_id: null }) & (Standing | { one_off_charge_enabled: null })

const claimTogether = batched<Ask, { row: Row; sentMs: number }>({
  group: ({ organizationId }) => organizationId,
  lanes: chargeLanes,
  async work(db, asks) {
    // Not when they were asked for: they may have waited long for their turn.
    const sentMs = asks.map(({ clock }) => clock.monotonicMs())
    const ids = asks.map(() => makeUuid())
    const rows = await send(db, asks, ids)
    const found = new Map(rows.map((row) => [row.asked_id, row]))
    return ids.map((id, n) => ({ row: found.get(id)!, sentMs: sentMs[n]! }))
  },
})

async function send(db: Db, asks: Ask[], ids: string[]): Promise<Row[]> {
  const run = (query: Query) => query<Row>(CLAIM, paramsOf(asks, ids))
  const personal = asks
    .filter(({ request }) => request.clientMetadata !== null)
    .map(({ request }) => request.externalId)
  if (personal.length === 0) return run(db.query)
  return db.tx(async (query, commit) => {
    const kept = keepErasureAway(query, asks[0]!.organizationId, personal)
    const claimed = run(query)
    commit()
    const [rows] = await Promise.all([claimed, kept])
    return rows
  })
}

function paramsOf(asks: Ask[], ids: string[]) {
  const { organizationId } = asks[0]!
  const column = (value: (ask: Ask) => string | null) => asks.map(value)
  return [
    organizationId,
    ids,
    column(({ request }) => request.externalId),
    column(({ request }) => request.idempotencyKey),
    column(({ amount }) => amount),
    column(({ request }) => request.currencyCode),
    column(({ request }) => request.clientMetadata),
    column(({ request }) => chargeKey(organizationId, request.externalId, request.idempotencyKey)),
    column(({ leaseMs }) => String(leaseMs / 1000)),
    column(({ ready }) => JSON.stringify(ready)),
  ]
}

const PAYMENTS = `from report_transactions r where r.organization_id = $1 and r.external_id = a.external_id
  and r.psp_transaction_type = 'sale' and r.status = 'succeeded'`

// An order is made under the rules of `allow`, which tells the one that is broken. In one order, so that two processes that
// claim for the same customers wait for one another and not in a circle. Whether a profile is erased is asked for each
// order: `exists` could be planned as one reading of all profiles.
const CLAIM: Statement = {
  name: 'claim orders',
  text: `
    with now as materialized (select db_clock() as at), standing as materialized (
      select a.*, g.one_off_charge_enabled, g.one_off_charge_max_amount, c.project_id, c.profile_id,
        card.trx_id, card.psp, card.psp_merchant_id, card.region, card.payment_method_token, m.currencies
      from unnest($2::uuid[], $3::text[], $4::text[], $5::numeric[], $6::text[], $7::text[], $8::text[], $9::float[],
          $10::text[])
        as a (asked_id, external_id, idempotency_key, amount, currency_code, client_metadata, provider_key, lease_s, ready)
      left join organizations g on g.id = $1
      left join customers c on c.organization_id = $1 and c.external_id = a.external_id
      left join lateral (
        select r.trx_id, r.psp, r.psp_merchant_id, r.region, r.payment_method_token
        ${PAYMENTS} and r.payment_method_token is not null order by r.trx_created_at desc limit 1) card on true
      left join merchant_accounts m on m.organization_id = $1 and m.psp = card.psp and m.psp_merchant_id = card.psp_merchant_id
    ), made as (
      insert into orders as o (organization_id, order_id, external_id, project_id, idempotency_key, amount, currency_code,
        client_metadata, psp, psp_merchant_id, region, payment_method_token, source_trx_id, provider_key,
        created_at, lease_until, next_look_at)
      select $1, a.asked_id, a.external_id, a.project_id, a.idempotency_key, a.amount, a.currency_code,
        case when a.client_metadata is not null and (select p.anonymized_at from profiles p
            where p.project_id = a.project_id and p.id = a.profile_id) is null
          then a.client_metadata::json end,
        a.psp, a.psp_merchant_id, a.region, a.payment_method_token, a.trx_id, a.provider_key,
        now.at, now.at + make_interval(secs => a.lease_s), now.at + make_interval(secs => a.lease_s)
      from standing a, now
      where a.one_off_charge_enabled
        and a.amount <= coalesce(a.one_off_charge_max_amount ->> a.currency_code,
          a.one_off_charge_max_amount ->> '*', '0')::numeric
        and a.project_id is not null and a.payment_method_token is not null
        and (a.ready::jsonb @> jsonb_build_array(jsonb_build_object('psp', a.psp, 'merchant_id', '*'))
          or a.ready::jsonb @> jsonb_build_array(jsonb_build_object('psp', a.psp, 'merchant_id', a.psp_merchant_id)))
        and (coalesce(json_array_length(a.currencies), 0) = 0 or a.currencies::jsonb ? a.currency_code)
      order by a.external_id, a.idempotency_key
      on conflict do nothing returning ${ORDER_COLUMNS}
    ), known as (
      select order_id as wanted_id, * from made
      union all
      select a.asked_id as wanted_id, ${ORDER_COLUMNS} from standing a join orders o on o.organization_id = $1
        and o.external_id = a.external_id and o.idempotency_key = a.idempotency_key
    )
    select a.asked_id, a.one_off_charge_enabled, a.one_off_charge_max_amount, a.project_id as customer_project_id,
      a.trx_id is not null or exists (select ${PAYMENTS}) as has_payment,
      a.payment_method_token as card_token, a.psp as card_psp,
      a.psp_merchant_id as card_psp_merchant_id, a.currencies,
      k.order_id is null and exists (select from orders o
        where o.organization_id = $1 and o.external_id = a.external_id and o.status = 'processing') as is_busy,
      k.*
    from standing a left join known k on k.wanted_id = a.asked_id`,
}
