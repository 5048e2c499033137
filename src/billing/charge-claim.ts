// Claims a charge: makes its order, at most one for a key and one in progress for a customer. Those who claim together share a commit.
import type { Db, Query, Statement } from '../lib/db.ts'
import { gather } from '../lib/gather.ts'
import { makeUuid } from '../lib/ids.ts'
import type { ChargeRequest } from './charge-request.ts'
import { chargeLanes, ORDER_COLUMNS, type Order } from './charges.ts'
import { chargeKey } from './keys.ts'

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
    const order = await insertTogether(db, { draft, leaseMs })
    if (order) return { outcome: 'claimed', order }
    const known = await findByKey(db.query, organizationId, request)
    if (known) return { outcome: 'known', order: known }
    const [busy] = await db.query(IN_PROGRESS, [organizationId, request.externalId])
    if (busy) return { outcome: 'busy' }
  }
  return { outcome: 'busy' }
}

/** The order that this key of this customer stands for already. */
async function findByKey(
  query: Query,
  organizationId: string,
  { externalId, idempotencyKey }: ChargeRequest,
): Promise<Order | undefined> {
  const [order] = await query<Order>(FIND_BY_KEY, [organizationId, externalId, idempotencyKey])
  return order
}

const FIND_BY_KEY: Statement = {
  name: 'find order by key',
  text: `select ${ORDER_COLUMNS} from orders o
         where o.organization_id = $1 and o.external_id = $2 and o.idempotency_key = $3`,
}

const insertTogether = gather<{ draft: Draft; leaseMs: number }, Order | undefined>({
  group: ({ draft }) => draft.organizationId,
  lanes: chargeLanes,
  // Straight behind what was read for them: the less can change in between.
  goesFirst: true,
  async work(db, claims) {
    const rows = claims.map(({ draft, leaseMs }) => rowOf(draft, leaseMs))
    const insert = (query: Query) => query<Order>(INSERT, [JSON.stringify(rows)])
    const personal = rows.filter((row) => row.client_metadata !== null && row.profile_id !== null)
    const made = await (personal.length === 0
      ? insert(db.query)
      : db.tx(async (query, commit) => {
          const kept = keepErasureAway(query, personal as { project_id: string; profile_id: string }[])
          const inserted = insert(query)
          commit()
          const [orders] = await Promise.all([inserted, kept])
          return orders
        }))
    const orders = new Map(made.map((order) => [order.order_id, order]))
    return rows.map((row) => orders.get(row.order_id))
  },
})

function rowOf({ organizationId, request, amount, projectId, profileId, card }: Draft, leaseMs: number) {
  return {
    organization_id: organizationId,
    order_id: makeUuid(),
    external_id: request.externalId,
    project_id: projectId,
    profile_id: profileId,
    idempotency_key: request.idempotencyKey,
    amount,
    currency_code: request.currencyCode,
    client_metadata: request.clientMetadata,
    psp: card.psp,
    psp_merchant_id: card.merchantId,
    region: card.region,
    payment_method_token: card.token,
    source_trx_id: card.sourceTrxId,
    provider_key: chargeKey(organizationId, request.externalId, request.idempotencyKey),
    lease_s: leaseMs / 1000,
  }
}

/**
 * Whoever writes what may be personal data of a profile locks it first and looks in a later statement whether it is
 * erased. The lock is the weakest that keeps an erasure out: an import that is changing the profile does not block it.
 * All who lock several do so in one order.
 */
async function keepErasureAway(query: Query, profiles: { project_id: string; profile_id: string }[]): Promise<void> {
  const projects = profiles.map(({ project_id }) => project_id)
  await query(KEEP_ERASURE_AWAY, [projects, profiles.map(({ profile_id }) => profile_id)])
}

const KEEP_ERASURE_AWAY: Statement = {
  name: 'keep erasure away',
  text: `
    select 1 from profiles p join unnest($1::text[], $2::text[]) as a (project_id, id)
      on p.project_id = a.project_id and p.id = a.id
    order by p.project_id, p.id for key share of p`,
}

// In one order, so that two processes which claim for the same customers wait for one another and not in a circle.
// Whether a profile is erased is asked for each order: `exists` could be planned as one reading of all profiles.
const INSERT: Statement = {
  name: 'insert orders',
  text: `
    insert into orders as o (organization_id, order_id, external_id, project_id, idempotency_key, amount, currency_code,
      client_metadata, psp, psp_merchant_id, region, payment_method_token, source_trx_id, provider_key,
      created_at, lease_until, next_look_at)
    select a.organization_id, a.order_id, a.external_id, a.project_id, a.idempotency_key, a.amount, a.currency_code,
      case when a.client_metadata is not null and (select p.anonymized_at from profiles p
          where p.project_id = a.project_id and p.id = a.profile_id) is null
        then a.client_metadata::json end,
      a.psp, a.psp_merchant_id, a.region, a.payment_method_token, a.source_trx_id, a.provider_key,
      t.now, t.now + make_interval(secs => a.lease_s), t.now + make_interval(secs => a.lease_s)
    from json_to_recordset($1) as a (organization_id text, order_id uuid, external_id text, project_id text,
        profile_id text, idempotency_key text, amount numeric, currency_code text, client_metadata text, psp text,
        psp_merchant_id text, region text, payment_method_token text, source_trx_id uuid, provider_key text,
        lease_s float),
      (select db_clock() as now) t
    order by a.external_id, a.idempotency_key
    on conflict do nothing returning ${ORDER_COLUMNS}`,
}

const IN_PROGRESS: Statement = {
  name: 'find order in progress',
  text: `select 1 from orders where organization_id = $1 and external_id = $2 and status = 'processing'`,
}
