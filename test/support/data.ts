// Builders of records with every column, and a function that inserts them into a project.
import type { Db } from '../../src/lib/pg/db.ts'
import type { Query } from '../../src/lib/pg/types.ts'
import { fold } from '../../src/lib/text.ts'

export type Table =
  | 'funnels'
  | 'experiments'
  | 'profiles'
  | 'sessions'
  | 'replies'
  | 'products'
  | 'subscriptions'
  | 'transactions'
  | 'customers'
  | 'orders'
  | 'refunds'
  | 'credit_units'
  | 'credit_accounts'
  | 'credit_entries'
  | 'events'

/** A row of a table by column; times as date-times. */
export type Columns = Record<string, unknown>
export type Rows = Partial<Record<Table, Columns[]>>

const T = '2026-01-02T03:04:05.000006Z'
const stamps = { created_at: T, updated_at: T }

const DEFAULTS: Record<Table, Columns> = {
  funnels: {
    ...stamps,
    title: 'Sleep quiz',
    alias: null,
    type: 'default',
    status: 'published',
    environment: 'production',
    version: 1,
    variation_count: 1,
    tags: [],
  },
  experiments: { ...stamps, title: 'Two prices', alias: 'prices', enabled: true },
  profiles: { ...stamps, preview: false, integrations: {} },
  sessions: { ...stamps, profile_id: 'profile', query_params: {}, tracking_cookies: {} },
  replies: { screen_id: 'screen-1', element_id: 'element-1', screen_index: 0, element_type: 'Input', value: null },
  products: { ...stamps, name: 'Monthly plan', status: 'active', metadata: {}, prices: [] },
  subscriptions: {
    ...stamps,
    status: 'active',
    renews: true,
    sandbox: false,
    billing_interval: 'month',
    billing_interval_count: 1,
    price: 1999,
    currency: 'USD',
    profile_id: 'profile',
    product_id: 'product',
  },
  transactions: { ...stamps, currency: 'USD', price: 1999, sandbox: false, profile_id: 'profile' },
  customers: stamps,
  orders: {
    created_at: T,
    idempotency_key: 'key',
    amount: '10',
    currency_code: 'USD',
    status: 'succeeded',
    failed_message_for_user: '',
    psp: 'simulator',
    payment_method_token: 'pm_card_visa',
    source_trx_id: '01900000-0000-7000-8000-000000000001',
    provider_key: 'provider-key',
    settled_at: T,
    looks: 0,
    amount_refunded: 0,
    amount_refunded_hard: 0,
  },
  refunds: {
    created_at: T,
    amount: '1',
    currency_code: 'USD',
    status: 'succeeded',
    provider_key: 'refund-key',
    settled_at: T,
    updated_at: T,
  },
  credit_units: { name: 'Tokens', created_at: T },
  credit_accounts: { unit: 'tokens', account_id: '00000000-0000-7000-8000-000000000000', created_at: T, updated_at: T },
  credit_entries: {
    unit: 'tokens',
    created_at: T,
    updated_at: T,
    entry_id: '00000000-0000-7000-8000-000000000000',
    account: 'spent',
    amount: -1,
    balance: 0,
    cause: 'spend',
  },
  events: { created_at: T, sequence: 1, pending: false, data: {} },
}

// The tables in an order in which references exist.
const ORDER = Object.keys(DEFAULTS) as Table[]
const OF_NO_PROJECT = new Set<Table>(['refunds', 'credit_units', 'credit_accounts'])
const OF_ORGANIZATIONS = new Set<Table>(['customers', 'orders', 'credit_entries', ...OF_NO_PROJECT])

/** Inserts rows into a project, with omitted columns from `DEFAULTS`, and counts them as every writer does. */
export async function insert(db: Db, project: { id: string; organizationId: string }, rows: Rows): Promise<void> {
  await db.tx(async (query) => {
    for (const table of ORDER) await insertRows(query, project, table, rows[table] ?? [])
  })
}

/** Inserts a row into any table. Times and ids that must not be null are now and random if omitted; other times can be 'now'. */
export async function addRow(db: Pick<Db, 'query'>, table: string, columns: Columns): Promise<void> {
  const given = Object.entries(columns).map(([name, value]) => ({ name, value: value === 'now' ? 'db_clock()' : name }))
  const missing = (await requiredOf(db, table)).filter(({ name }) => !(name in columns))
  const all = [...given, ...missing]
  await db.query(
    `insert into ${table} (${all.map(({ name }) => name)}) select ${all.map(({ value }) => value)}
     from json_populate_record(null::${table}, $1)`,
    [JSON.stringify(columns)],
  )
}

const required = new Map<string, { name: string; value: string }[]>()

async function requiredOf({ query }: Pick<Db, 'query'>, table: string) {
  const known = required.get(table)
  if (known) return known
  const found = await query<{ name: string; value: string }>(
    `select attname as name, case when atttypid = 'uuid'::regtype then 'gen_random_uuid()' else 'db_clock()' end as value
     from pg_attribute where attrelid = $1::regclass and attnum > 0 and attnotnull and not atthasdef
       and atttypid in ('timestamptz'::regtype, 'uuid'::regtype)`,
    [table],
  )
  required.set(table, found)
  return found
}

/** The records to which most others refer, with plain ids: `funnel`, `experiment`, `profile`, `session`, `product`. */
export const BASICS: Rows = {
  funnels: [{ id: 'funnel' }],
  experiments: [{ id: 'experiment' }],
  profiles: [{ id: 'profile' }],
  sessions: [{ id: 'session', profile_id: 'profile' }],
  products: [{ id: 'product' }],
}

async function insertRows(
  query: Query,
  project: { id: string; organizationId: string },
  table: Table,
  rows: Columns[],
): Promise<void> {
  if (rows.length === 0) return
  const owner = OF_ORGANIZATIONS.has(table) ? { organization_id: project.organizationId } : {}
  const full: Columns[] = rows.map((row) => ({
    ...DEFAULTS[table],
    ...(!OF_NO_PROJECT.has(table) && { project_id: project.id }),
    ...owner,
    ...folded(table, row),
    ...row,
  }))
  const columns = [...new Set(full.flatMap((row) => Object.keys(row)))]
  // The null of a reply is JSON's.
  const values = columns.map((column) => (column === 'value' ? "coalesce(value, 'null')" : column))
  await query(`insert into ${table} (${columns}) select ${values} from json_populate_recordset(null::${table}, $1)`, [
    JSON.stringify(full),
  ])
  await addCounts(query, project.id, table, full, 1)
}

function folded(table: Table, row: Columns): Columns {
  if (table === 'funnels') return { title_folded: fold(String(row.title ?? DEFAULTS.funnels.title)) }
  if ((table === 'profiles' || table === 'customers') && row.email) return { email_folded: fold(String(row.email)) }
  return {}
}

const COUNTED: Partial<Record<Table, string[]>> = {
  funnels: [],
  experiments: [],
  profiles: ['funnel_id'],
  sessions: ['funnel_id'],
  products: [],
  subscriptions: ['status', 'funnel_id', 'product_id', 'payment_provider'],
  transactions: [],
}

/** What a writer of rows adds to `counts`: `sign` 1 for new rows, -1 for old ones. */
export async function addCounts(
  query: Query,
  projectId: string,
  table: Table,
  rows: Columns[],
  sign: 1 | -1,
): Promise<void> {
  const fields = COUNTED[table]
  if (!fields) return
  const deltas = new Map<string, number>()
  const add = (field: string, value: unknown) => {
    if (value === null || value === undefined) return
    const key = JSON.stringify([field, value])
    deltas.set(key, (deltas.get(key) ?? 0) + sign)
  }
  for (const row of rows) {
    if (table !== 'funnels' || !row.deleted_at) add('', '')
    if (table === 'funnels') add('all', '')
    for (const field of fields) add(field, row[field])
  }
  const lines = [...deltas].map(([key, n]) => {
    const [field, value] = JSON.parse(key) as [string, string]
    return { project_id: projectId, list: table, field, value, n }
  })
  await query(
    `insert into counts (project_id, list, field, value, n)
     select project_id, list, field, value, n from json_populate_recordset(null::counts, $1)`,
    [JSON.stringify(lines)],
  )
}
