// Two tenants with one object of every kind, whose names show the tenant; names that do not exist; and all rows of a tenant.
import { createHash, randomUUID } from 'node:crypto'
import { createEndpoint } from '../../src/core/events/endpoints.ts'
import { write } from '../../src/core/events/outbox.ts'
import { createKey } from '../../src/core/tenants/secret-keys.ts'
import { followProject } from '../../src/data/figures/follow.ts'
import { beginState } from '../../src/data/ingest/stripe/state.ts'
import type { Db } from '../../src/lib/pg/db.ts'
import type { Statement } from '../../src/lib/pg/types.ts'
import type { Billing, Organization } from '../support/billing.ts'
import { addUnit } from '../support/credits.ts'
import { addRow, type Columns, insert } from '../support/data.ts'

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
  const order_id = body.order_id as string
  const organization_id = mark
  const refund = {
    amount: 1,
    currency_code: 'USD',
    status: 'failed',
    provider_key: `key of ${mark}`,
    settled_at: 'now',
  }
  const dispute = { dispute_id: `dispute of ${mark}`, amount: 1, currency_code: 'USD', status: 'won' }
  await addRow(db, 'refunds', { organization_id, order_id, external_id: customer, ...refund, updated_at: 'now' })
  await addRow(db, 'disputes', { organization_id, order_id, ...dispute })
  const connected = { is_sandbox: true, credentials: 'sealed', credentials_last4: '0000', connected_at: 'now' }
  for (const [psp, more] of Object.entries({ simulator: { currencies: [] }, [mark]: connected, stripe: connected }))
    await addRow(db, 'merchant_accounts', { organization_id, psp, psp_merchant_id: mark, ...more })
  await addCredits(billing, organization, [mark, order_id, customer])
  const account = { organization_id, psp: mark, psp_merchant_id: mark }
  const lost = { transaction_id: mark, type: 'charge', state: 'moved', provider_key: mark, amount: 1 }
  await addRow(db, 'lost_movements', { ...account, ...lost, currency_code: 'USD' })
  const payment = {
    amount: 1,
    currency_code: 'USD',
    status: 'failed',
    psp_transaction_type: 'sale',
    psp_reason_code: mark,
  }
  await addRow(db, 'report_transactions', {
    organization_id,
    psp: mark,
    external_id: customer,
    imported: true,
    ...payment,
  })
  await addRow(db, 'finance_months', { organization_id, month: '2025-11-01' })
  const payout = { payout_id: mark, amount: 5, status: 'paid', is_automatic: true, arrives_on: '2026-01-02' }
  await addRow(db, 'provider_payouts', { ...account, ...payout, currency_code: 'USD' })
  const fee = { entry_id: mark, type: 'stripe_fee', amount: -1, fee: 0, net: -1, currency_code: 'USD' }
  await addRow(db, 'balance_entries', { ...account, ...fee })
  const imported = { organizationId: mark, projectId: project, merchantId: mark }
  await beginState(db.query, imported, { external_id_key: mark }, { background: false, firstStep: 'products' })
  const names = { mark, organization: mark, project, customer, order: order_id }
  await followProject(db, project)
  const waiting = { record: 'profile', id: mark, field: 'session_id', named: `session of ${mark}` }
  await addRow(db, 'waiting_links', { project_id: project, ...waiting })
  await addRow(db, 'sync_readers', { project_id: project, list: 'profiles', rows_of_day: 1 })
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
  [mark, orderId, external_id]: [string, string, string],
): Promise<void> {
  const organization_id = mark
  await addUnit(db, mark, mark)
  const cap = { scope: 'customer', per: 'month', currency_code: '', most: 1_000_000 }
  await addRow(db, 'charge_caps', { organization_id, ...cap })
  await addRow(db, 'credit_rules', { organization_id, currency_code: 'USD', charged: 5, unit: mark, amount: 1 })
  await post('/credits/grant', { external_id, unit: mark, amount: 1000, idempotency_key: 'first' })
  // Of two top-ups one is left when the other is removed.
  await addUnit(db, mark, `${mark}-too`)
  await post('/credits/grant', { external_id, unit: `${mark}-too`, amount: 1, idempotency_key: 'second' })
  const topUp = {
    status: 'off',
    below: 1,
    amount: 5,
    currency_code: 'USD',
    grants: 1,
    most_per_day: 1,
    most_per_month: 1,
  }
  for (const unit of [mark, `${mark}-too`])
    await addRow(db, 'credit_top_ups', { organization_id, external_id, unit, ...topUp })
  const expires_at = new Date(Date.now() + 86_400_000)
  await addRow(db, 'credit_holds', {
    organization_id,
    hold_id: orderId,
    external_id,
    unit: mark,
    amount: 1,
    expires_at,
  })
  await db.query('update credit_accounts set held = 1 where organization_id = $1', [mark])
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

/** A fingerprint of all rows with the tenants' organizations or projects, in all tables. */
export async function contentsOf(db: Db, ...tenants: Pick<Tenant, 'organization' | 'project'>[]): Promise<string> {
  contents ??= makeContents(db)
  const [all] = await db.query(await contents, [
    tenants.map(({ organization }) => organization),
    tenants.map(({ project }) => project),
  ])
  return createHash('sha256').update(all!.rows!).digest('hex')
}

// Made once, because no test changes the tables.
let contents: Promise<Statement> | undefined

/** The query of all rows: $1 are the organizations, $2 the projects. Named, because planning it takes far longer than its rows. */
async function makeContents(db: Db): Promise<Statement> {
  const tables = await db.query<{ name: string; condition: string }>(OWNED_TABLES)
  if (tables.length < 20) throw new Error(`Only ${tables.length} tables belong to tenants?`)
  const rows = tables.map(
    ({ name, condition }) => `select '${name}' as name, t::text as value from ${name} t where ${condition}`,
  )
  const text = `select coalesce(string_agg(name || value, E'\\n' order by name, value), '') as rows
    from (${rows.join(' union all ')}) all_rows`
  return { name: 'contents of tenants', text }
}

// Without the rate buckets, the last use of keys, what they read last and the counts of what they wrote, which change with requests.
const OWNED_TABLES = `
  select quote_ident(c.relname) as name, string_agg(
    format('t.%I = any(%s)', a.attname, case when a.attname = 'project_id' then '$2' else '$1' end), ' or ') as condition
  from pg_class c join pg_attribute a on a.attrelid = c.oid and not a.attisdropped
  where c.relkind in ('r', 'p') and not c.relispartition and c.relpersistence = 'p'
    and c.relnamespace = 'public'::regnamespace and c.relname not in ('key_uses', 'sync_readers', 'record_writers')
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
  const message = { destination_id: mark, kind: 'digest', day: '2026-01-02', content: { title: mark }, status: 'sent' }
  await db.query(
    `insert into alert_settings (project_id, next_check_at) values ($1, db_clock() + interval '5 minutes') on conflict do nothing`,
    [project],
  )
  const rule = { metric: 'sessions', condition: 'below', threshold: 0, today: false, from_hour: 0 }
  await addRow(db, 'alert_rules', { project_id: project, id: mark, ...rule })
  const destination = { kind: 'webhook', address: '', shown: `http://127.0.0.1:9/${mark}` }
  await addRow(db, 'alert_destinations', { project_id: project, id: mark, ...destination })
  await addRow(db, 'alert_messages', { project_id: project, ...message, scheduled_at: 'now', finished_at: 'now' })
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
  const names = { project_id: project, event_id: row!.id!, endpoint_id: webhook }
  const next_attempt_at = new Date(Date.now() + 3_600_000)
  await addRow(db, 'webhook_deliveries', { ...names, next_attempt_at, attempts: 2, failures: 2 })
  await addRow(db, 'webhook_attempts', { ...names, number: 1, duration_ms: 5, status: 500, answer: mark })
  return row!.id!
}
