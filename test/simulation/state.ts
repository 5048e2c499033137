// The state of a seed's organizations in the database, read in one statement, for the invariants.
import { CREDITS, type CreditState } from './credit-rules.ts'
import type { Database } from './database.ts'
import type { Shop } from './shops.ts'
import { instantOf } from './virtual-clock.ts'

/** An order with everything that was written because of it. Amounts are in cents. */
export interface OrderState {
  order_id: string
  external_id: string
  project: string
  idempotency_key: string
  provider_key: string
  merchant: string
  /** Of the card that is charged; empty if the order was made for a charge that was lost. */
  token: string
  created_ms: number
  /** The time of its payment, if it succeeded. */
  paid_ms: number | null
  status: string
  minor: number
  refunded: number
  refunded_hard: number
  has_metadata: boolean
  is_erased: boolean
  /** The amounts of its consumables, and how many of them are active. */
  consumables: number[]
  active: number
  /** The provider's id of its charge. */
  charge: string | null
  disputes: { id: string; status: string; is_withdrawn: boolean; is_reinstated: boolean }[]
  /** Rows of the report: type and cents. */
  rows: { type: string; status: string; minor: number }[]
  /** The events of the order and of its consumable, in their order. */
  events: string[]
}

export interface RefundState {
  refund_id: string
  order_id: string
  provider_key: string
  status: string
  minor: number
  soft: boolean
  /** Found at the provider, not claimed here. */
  adopted: boolean
  events: string[]
}

export interface State {
  orders: OrderState[]
  refunds: RefundState[]
  /** By project: the number of transactions, their total in the counters, and the prices of those created by charges. */
  totals: { project: string; transactions: number; counted: number; prices: number[] }[]
  /** Only rows written by Tundish, not imported ones. */
  stamps: string[]
  /** Erased profiles without personal data. */
  erased: string[]
  credits: CreditState
  /** When the next charge or refund in progress, expiry or top-up is due, in milliseconds of virtual time; null if none is in progress. */
  due_ms: number | null
}

/** A horizon of a project that a reader received. */
export interface Promised {
  project: string
  horizon: string
}

/** The input of the rules. */
export interface Picture {
  /** The organizations, in the order of the shops. */
  states: State[]
  /** By project: the rows stamped before the horizon that its readers received. */
  stamped: Map<string, Set<string>>
}

/** Reads the committed state. Returns the previous one if nothing was committed since. */
export class Reader {
  readonly #database: Database
  readonly #tenants: string
  /** The transactions whose changes are included. */
  #seen: string | null = null
  #picture: Picture | undefined

  constructor(database: Database, shops: readonly Shop[]) {
    this.#database = database
    this.#tenants = JSON.stringify(shops.map(({ organization, projects }) => ({ organization, projects })))
  }

  async read(nowMs: number, promises: readonly Promised[]): Promise<Picture> {
    // Preparing to run the long statement costs more than most changes, so a short one looks for changes first.
    const [present] = await this.#database.ask(nowMs, SEEN)
    if (this.#picture && present!.seen === this.#seen) return this.#picture
    const [row] = await this.#database.ask(nowMs, PICTURE, [this.#tenants, JSON.stringify(promises)])
    this.#seen = row!.seen!
    const states = JSON.parse(row!.states!) as State[]
    const stamped = JSON.parse(row!.stamped!) as { project: string; rows: string[] }[]
    this.#picture = { states, stamped: new Map(stamped.map(({ project, rows }) => [project, new Set(rows)])) }
    return this.#picture
  }
}

/** The rows of a project that are stamped before `horizon`. */
export async function readStamped(
  database: Database,
  nowMs: number,
  { project, horizon }: Promised,
): Promise<Set<string>> {
  const [row] = await database.ask(nowMs, STAMPED, [project, horizon])
  return new Set(JSON.parse(row!.stamped!) as string[])
}

const stampedBefore = (project: string, horizon: string) => `
  (select coalesce(json_agg(list || ' ' || id || ' ' || updated_at), '[]') from (
    select 'profiles' as list, id, updated_at from profiles where project_id = ${project}
    union all select 'subscriptions', id, updated_at from subscriptions where project_id = ${project}
    union all select 'transactions', id, updated_at from transactions where project_id = ${project}
    union all select 'sessions', id, updated_at from sessions where project_id = ${project}) rows
   where updated_at < ${horizon})`

const STAMPED = { name: 'stamped rows', text: `select ${stampedBefore('$1', '$2::timestamptz')} as stamped` }

const EVENTS = (id: string) => `
  (select coalesce(json_agg(e.type order by e.sequence), '[]') from events e
   where e.project_id = any(t.projects) and e.object_id = ${id})`

/** Virtual time in milliseconds, with fractions. */
const MS = (at: string) => `extract(epoch from ${at} - timestamptz '${instantOf(0)}') * 1000`

const STATE = `
    select json_build_object(
      'orders', (select coalesce(json_agg(json_build_object(
          'order_id', o.order_id, 'external_id', o.external_id, 'project', o.project_id, 'idempotency_key', o.idempotency_key,
          'provider_key', o.provider_key, 'merchant', o.psp_merchant_id, 'status', o.status,
          'token', o.payment_method_token, 'created_ms', ${MS('o.created_at')},
          'paid_ms', (select ${MS('r.trx_created_at')} from report_transactions r where r.organization_id = t.organization
            and r.order_id = o.order_id and not r.imported and r.psp_transaction_type = 'sale' and r.status = 'succeeded'),
          'minor', (o.amount * 100)::int, 'refunded', (o.amount_refunded * 100)::int,
          'refunded_hard', (o.amount_refunded_hard * 100)::int,
          'has_metadata', o.client_metadata is not null,
          'is_erased', coalesce((select p.anonymized_at is not null from profiles p
            where p.project_id = c.project_id and p.id = c.profile_id), false),
          'consumables', (select coalesce(json_agg((x.amount * 100)::int), '[]') from consumables x
            where x.organization_id = t.organization and x.order_id = o.order_id),
          'active', (select count(*) from consumables x
            where x.organization_id = t.organization and x.order_id = o.order_id and x.is_active),
          'charge', o.charge_transaction_id,
          'disputes', (select coalesce(json_agg(json_build_object('id', d.dispute_id, 'status', d.status,
              'is_withdrawn', d.funds_withdrawn_at is not null, 'is_reinstated', d.funds_reinstated_at is not null) order by d.dispute_id), '[]')
            from disputes d where d.organization_id = t.organization and d.order_id = o.order_id),
          'rows', (select coalesce(json_agg(json_build_object('type', r.psp_transaction_type, 'status', r.status,
              'minor', (r.amount * 100)::int) order by r.trx_created_at), '[]')
            from report_transactions r where r.organization_id = t.organization and r.order_id = o.order_id and not r.imported),
          'events', ${EVENTS('o.order_id::text')}
        ) order by o.order_id), '[]')
        from orders o join customers c using (organization_id, external_id) where o.organization_id = t.organization),
      'refunds', (select coalesce(json_agg(json_build_object(
          'refund_id', r.refund_id, 'order_id', r.order_id, 'provider_key', r.provider_key, 'status', r.status,
          'minor', (r.amount * 100)::int, 'soft', r.soft_refund, 'adopted', r.is_adopted,
          'events', ${EVENTS('r.refund_id::text')}
        ) order by r.refund_id), '[]') from refunds r where r.organization_id = t.organization),
      'totals', (select json_agg(json_build_object('project', p,
          'transactions', (select count(*) from transactions where project_id = p),
          'prices', (select coalesce(json_agg(price order by price), '[]') from transactions
            where project_id = p and id not like 'imported%'),
          'counted', (select coalesce(sum(n), 0) from counts where project_id = p and list = 'transactions' and field = '')))
        from unnest(t.projects::text[]) p),
      'erased', (select coalesce(json_agg(project_id || ' ' || id order by project_id, id), '[]') from profiles
        where project_id = any(t.projects) and anonymized_at is not null and email is null),
      'due_ms', (select ceil(extract(epoch from min(next_look_at) - timestamptz '${instantOf(0)}') * 1000) from (
          select next_look_at from orders where organization_id = t.organization and status = 'processing'
          union all
          select next_look_at from refunds where organization_id = t.organization and status = 'processing'
          union all
          select due_at from credit_accounts where organization_id = t.organization and due_at is not null
          union all
          select greatest(due_at, lease_until) from credit_top_ups
          where organization_id = t.organization and due_at is not null) due),
      'credits', ${CREDITS},
      'stamps', (select coalesce(json_agg(trx_created_at order by trx_created_at), '[]')
        from report_transactions where organization_id = t.organization and not imported))`

const SEEN = { name: 'transactions', text: 'select pg_current_snapshot()::text as seen' }

const PICTURE = {
  name: 'picture of the seed',
  text: `
    select pg_current_snapshot()::text as seen, (
      select json_agg((${STATE}) order by n)
      from rows from (json_to_recordset($1) as (organization text, projects text[])) with ordinality t (organization, projects, n)
    ) as states, (
      select coalesce(json_agg(json_build_object('project', project, 'rows', ${stampedBefore('project', 'horizon')})), '[]')
      from json_to_recordset($2) as promised (project text, horizon timestamptz)
    ) as stamped`,
}
