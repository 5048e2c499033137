// Two tenants with one object of every kind, whose names show the tenant; names that do not exist; and all rows of a tenant.
import { createHash, randomUUID } from 'node:crypto'
import { createEndpoint } from '../../src/core/events/endpoints.ts'
import { write } from '../../src/core/events/outbox.ts'
import { createKey } from '../../src/core/tenants/secret-keys.ts'
import { followProject } from '../../src/data/figures/follow.ts'
import { beginState } from '../../src/data/ingest/stripe/state.ts'
import type { Db } from '../../src/lib/pg/db.ts'
import type { Billing, Organization } from '../support/billing.ts'
import { addUnit } from '../support/credits.ts'
import { type Columns, insert } from '../support/data.ts'

/** The names of a tenant and its objects. */
export interface Tenant {
  /** In every text of its data, and the id of its records. */
  mark: string
  organization: string
  project: string
  customer: string
  order: string
  event: string
  webhook: string
  /** A further valid key, of the organization or the project, depending on the path. */
  spareKey: string
}

export interface TenantWithKeys extends Tenant {
  organizationKey: string
  projectKey: string
}

/** Names of objects that do not exist, in the organization and project of `ours`. */
export function missingObjects(ours: Tenant): Tenant {
  const [order, event, webhook, spareKey] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()]
  return { ...ours, mark: 'nobody', customer: 'user-nobody', order, event, webhook, spareKey }
}

/** Makes an organization `mark` and its project with a row of every kind. */
export async function makeTenant(billing: Billing, mark: string): Promise<TenantWithKeys> {
  const { db } = billing
  const { projectId: project, key: organizationKey, projectKey, ...organization } = await billing.organization(mark)
  await insert(db, { id: project, organizationId: mark }, records(mark))
  const customer = await organization.customer({ merchantId: mark })
  const { body } = await organization.charge(customer, { amount: '400', client_metadata: { mark } })
  const ofOrder = [mark, body.order_id as string, customer]
  await db.query(
    `insert into refunds (organization_id, order_id, external_id, refund_id, amount, currency_code, status, provider_key,
       created_at, settled_at, updated_at)
     select $1, $2, $3, gen_random_uuid(), 1, 'USD', 'failed', 'key of ' || $1, t.now, t.now, t.now
     from (select db_clock() as now) t`,
    ofOrder,
  )
  await db.query(
    `insert into disputes (organization_id, order_id, dispute_id, amount, currency_code, status, opened_at, created_at,
       updated_at)
     select $1, $2, 'dispute of ' || $1, 1, 'USD', 'won', t.now, t.now, t.now from (select db_clock() as now) t`,
    ofOrder.slice(0, 2),
  )
  await db.query(
    `insert into merchant_accounts (organization_id, psp, psp_merchant_id, currencies, created_at, updated_at)
     values ($1, 'simulator', $1, '[]', db_clock(), db_clock())`,
    [mark],
  )
  await db.query(
    `insert into merchant_accounts (organization_id, psp, psp_merchant_id, is_sandbox, credentials, credentials_last4,
       connected_at, created_at, updated_at)
     values ($1, $1, $1, true, 'sealed', '0000', db_clock(), db_clock(), db_clock())`,
    [mark],
  )
  await db.query(
    `insert into merchant_accounts (organization_id, psp, psp_merchant_id, is_sandbox, credentials, credentials_last4,
       connected_at, created_at, updated_at)
     values ($1, 'stripe', $1, true, 'sealed', '0000', db_clock(), db_clock(), db_clock())`,
    [mark],
  )
  await addCredits(billing, organization, ofOrder)
  await db.query(
    `insert into lost_movements (organization_id, psp, psp_merchant_id, transaction_id, type, state, provider_key, amount,
       currency_code, moved_at, found_at)
     values ($1, $1, $1, $1, 'charge', 'moved', $1, 1, 'USD', db_clock(), db_clock())`,
    [mark],
  )
  await db.query(
    `insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at,
       amount, currency_code, status, psp, psp_transaction_type, psp_reason_code)
     values ($1, $2, true, db_clock(), gen_random_uuid(), gen_random_uuid(), db_clock(), 1, 'USD', 'failed', $1, 'sale', $1)`,
    [mark, customer],
  )
  await db.query(
    `insert into finance_months (organization_id, month, closed_at) values ($1, '2025-11-01', db_clock())`,
    [mark],
  )
  await db.query(
    `insert into provider_payouts (organization_id, psp, psp_merchant_id, payout_id, amount, currency_code, status, is_automatic,
       arrives_on, created_at)
     values ($1, $1, $1, $1, 5, 'USD', 'paid', true, '2026-01-02', db_clock())`,
    [mark],
  )
  await db.query(
    `insert into balance_entries (organization_id, psp, psp_merchant_id, entry_id, type, amount, fee, net, currency_code, entered_at)
     values ($1, $1, $1, $1, 'stripe_fee', -1, 0, -1, 'USD', db_clock())`,
    [mark],
  )
  const imported = { organizationId: mark, projectId: project, merchantId: mark }
  await beginState(db.query, imported, { external_id_key: mark }, { background: false, firstStep: 'products' })
  const names = { mark, organization: mark, project, customer, order: body.order_id as string }
  await followProject(db, project)
  await db.query(
    `insert into waiting_links (project_id, record, id, field, named, created_at)
     values ($1, 'profile', $2, 'session_id', 'session of ' || $2, db_clock())`,
    [project, mark],
  )
  await db.query(
    `insert into sync_readers (project_id, key_id, list, last_seen_at, window_to, rows_of_day)
     values ($1, gen_random_uuid(), 'profiles', db_clock(), db_clock(), 1)`,
    [project],
  )
  await db.query(
    `insert into record_writers (project_id, key_id, day, record, code, n, last_seen_at)
     select $1, id, current_date, 'session', '', 1, db_clock() from secret_keys where project_id = $1 limit 1`,
    [project],
  )
  await db.query('update secret_keys set name = $1 where organization_id = $1', [mark])
  await addAlerts(db, names)
  const webhook = await makeWebhook(db, names)
  const event = await makeEvent(db, names, webhook)
  return { ...names, organizationKey, projectKey, webhook, event, spareKey: '' }
}

/** A cap that nothing reaches, a unit with the name of the tenant, a rule, an entry, and an open hold with the id of the order. */
async function addCredits(
  { db }: Billing,
  { post }: Pick<Organization, 'post'>,
  [mark, orderId, external_id]: string[],
): Promise<void> {
  await addUnit(db, mark!, mark!)
  await db.query(
    `insert into charge_caps (organization_id, scope, per, currency_code, most, created_at)
     values ($1, 'customer', 'month', '', 1000000, db_clock())`,
    [mark!],
  )
  await db.query(
    `insert into credit_rules (organization_id, currency_code, charged, unit, amount, created_at)
     values ($1, 'USD', 5, $1, 1, db_clock())`,
    [mark!],
  )
  await post('/credits/grant', { external_id, unit: mark, amount: 1000, idempotency_key: 'first' })
  // Of two top-ups one is left when the other is removed.
  await addUnit(db, mark!, `${mark}-too`)
  await post('/credits/grant', { external_id, unit: `${mark}-too`, amount: 1, idempotency_key: 'second' })
  await db.query(
    `insert into credit_top_ups (organization_id, external_id, unit, top_up_id, status, below, amount, currency_code, grants,
       most_per_day, most_per_month, created_at, updated_at)
     select $1, $2, unit, gen_random_uuid(), 'off', 1, 5, 'USD', 1, 1, 1, db_clock(), db_clock()
     from credit_accounts where organization_id = $1`,
    [mark!, external_id!],
  )
  await db.query(
    `insert into credit_holds (organization_id, hold_id, external_id, unit, amount, expires_at, created_at)
     values ($1, $2, $3, $1, 1, db_clock() + interval '1 day', db_clock())`,
    [mark!, orderId!, external_id!],
  )
  await db.query('update credit_accounts set held = 1 where organization_id = $1', [mark!])
}

/** The same tenant with a new endpoint, event or key, if the path names one. */
export async function withFresh(billing: Billing, tenant: TenantWithKeys, path: string): Promise<TenantWithKeys> {
  const { app, db } = billing.server
  const fresh = { ...tenant }
  if (path.includes('/alert')) await addAlerts(db, tenant)
  if (path.includes('{webhook_id}')) fresh.webhook = await makeWebhook(db, tenant)
  if (path.includes('{key_id}')) {
    const holder = {
      organization_id: tenant.organization,
      project_id: path.includes('{project_id}') ? tenant.project : null,
    }
    fresh.spareKey = (await db.tx((query) => createKey(query, app.seal, holder, { name: tenant.mark }))).id
  }
  return fresh
}

/** A fingerprint of each row with the tenant's organization or project, in all tables. */
export async function contentsOf(db: Db, { organization, project }: Tenant): Promise<string> {
  const tables = await db.query<{ name: string; condition: string }>(OWNED_TABLES)
  if (tables.length < 20) throw new Error(`Only ${tables.length} tables belong to tenants?`)
  const rows = tables.map(
    ({ name, condition }) => `select '${name}' as name, t::text as value from ${name} t where ${condition}`,
  )
  const all = await db.query(
    `select coalesce(string_agg(name || value, E'\\n' order by name, value), '') as rows
     from (select null as name, null as value where $1 = $2 union all ${rows.join(' union all ')}) all_rows`,
    [organization, project],
  )
  return createHash('sha256').update(all[0]!.rows!).digest('hex')
}

// Without the rate buckets, the last use of keys and the counts of what they wrote, which change with requests.
const OWNED_TABLES = `
  select quote_ident(c.relname) as name, string_agg(
    format('t.%I = %s', a.attname, case when a.attname = 'project_id' then '$2' else '$1' end), ' or ') as condition
  from pg_class c join pg_attribute a on a.attrelid = c.oid and not a.attisdropped
  where c.relkind in ('r', 'p') and not c.relispartition and c.relpersistence = 'p'
    and c.relnamespace = 'public'::regnamespace and c.relname not in ('key_uses', 'record_writers')
    and (a.attname in ('project_id', 'organization_id') or (c.relname = 'organizations' and a.attname = 'id'))
  group by c.oid, c.relname order by c.relname`

function records(mark: string) {
  const of = (more: Columns): Columns[] => [{ id: mark, ...more }]
  const refers = { profile_id: mark, funnel_id: mark, session_id: mark }
  return {
    funnels: of({ title: mark, alias: mark, type: mark }),
    experiments: of({ title: mark }),
    profiles: of({ email: `${mark}@example.com`, phone: mark, funnel_id: mark }),
    sessions: of({ profile_id: mark, funnel_id: mark, user_agent: mark, ip: mark }),
    replies: [{ session_id: mark, value: mark, element_id: mark, screen_id: mark }],
    products: of({ name: mark, metadata: { mark } }),
    subscriptions: of({ ...refers, product_id: mark }),
    transactions: of({ ...refers, subscription_id: mark }),
  }
}

/** A rule, a destination and a message with the name of the tenant, and no others. */
async function addAlerts(db: Db, { project, mark }: Pick<Tenant, 'project' | 'mark'>): Promise<void> {
  for (const table of ['alert_messages', 'alert_destinations', 'alert_rules'])
    await db.query(`delete from ${table} where project_id = $1`, [project])
  for (const [table, columns, values] of [
    ['alert_settings', 'next_check_at', `db_clock() + interval '5 minutes'`],
    [
      'alert_rules',
      'id, metric, condition, threshold, today, from_hour, created_at, updated_at',
      `$2, 'sessions', 'below', 0, false, 0, db_clock(), db_clock()`,
    ],
    [
      'alert_destinations',
      'id, kind, address, shown, created_at, updated_at',
      `$2, 'webhook', '', 'http://127.0.0.1:9/' || $2, db_clock(), db_clock()`,
    ],
    [
      'alert_messages',
      'id, destination_id, kind, day, content, status, created_at, scheduled_at, finished_at',
      `gen_random_uuid(), $2, 'digest', '2026-01-02', jsonb_build_object('title', $2::text), 'sent', db_clock(), db_clock(), db_clock()`,
    ],
  ] as const)
    await db.query(
      `insert into ${table} (project_id, ${columns}) select $1, ${values} where $2::text is not null on conflict do nothing`,
      [project, mark],
    )
}

const makeWebhook = (db: Db, { project, mark }: Pick<Tenant, 'project' | 'mark'>) =>
  db.tx((query) =>
    createEndpoint(
      query,
      project,
      { url: `http://127.0.0.1:9/${mark}`, kinds: [], enabled: true },
      { allowPrivate: true },
    ),
  )

/** An event about a funnel, with a delivery that failed twice. */
async function makeEvent(db: Db, { project, mark }: Pick<Tenant, 'project' | 'mark'>, webhook: string) {
  const told = { type: 'charge.succeeded', object_id: mark, profile_id: mark, data: { mark } } as const
  await db.tx((query) => write(query, project, [told]))
  const [row] = await db.query('select id from events where project_id = $1 and object_id = $2', [project, mark])
  const names = [project, row!.id!, webhook]
  await db.query(
    `insert into webhook_deliveries (project_id, event_id, endpoint_id, created_at, next_attempt_at, attempts, failures)
     values ($1, $2, $3, db_clock(), db_clock() + interval '1 hour', 2, 2)`,
    names,
  )
  await db.query(
    `insert into webhook_attempts (project_id, event_id, endpoint_id, number, attempted_at, duration_ms, status, answer)
     values ($1, $2, $3, 1, db_clock(), 5, 500, $4)`,
    [...names, mark],
  )
  return row!.id!
}
