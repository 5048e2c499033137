// Imports: a fresh database with projects, and minimal valid lines.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { pino } from 'pino'
import { createOrganization, createProject } from '../../src/core/tenants/tenants.ts'
import { type Importing, type ImportOptions, type ImportResult, importRecords } from '../../src/data/ingest/load.ts'
import { type Db, openDb } from '../../src/lib/pg/db.ts'
import type { NamedRow, Param } from '../../src/lib/pg/types.ts'
import { openSeal } from '../../src/lib/secrets.ts'
import { addRow } from './data.ts'
import { type FreshDatabase, freshDatabase } from './postgres.ts'

export type Line = { record: string; data: object } | string
export interface Project {
  id: string
  organizationId: string
}

export interface Imports {
  db: Db
  url: string
  /** A new project, by default in its own organization. */
  project(organizationId?: string): Promise<Project>
  /** Imports one source, `file`, with these lines. */
  run(project: Project, lines: Line[], options?: Partial<ImportOptions>): Promise<ImportResult>
  rows(text: string, params?: Param[]): Promise<NamedRow[]>
  /** The first row of a statement. */
  row(text: string, params?: Param[]): Promise<NamedRow>
  /** A column of one record of a project. */
  column(project: Project, table: string, name: string, id: string): Promise<string | null | undefined>
  /** How many rows of a table a project has. */
  count(project: Project, table: string): Promise<number>
  /** The time of the database. */
  now(): Promise<string>
  stop(): Promise<void>
}

export async function openImports(): Promise<Imports> {
  const database: FreshDatabase = await freshDatabase()
  const db = openDb({ url: database.url, applicationName: 'test' })
  const seal = openSeal(randomBytes(32))
  let made = 0
  const rows: Imports['rows'] = (text, params) => db.query(text, params)
  const row: Imports['row'] = async (text, params) => (await rows(text, params))[0]!
  return {
    db,
    url: database.url,
    async project(organizationId) {
      const id = `project-${++made}`
      const organization = organizationId ?? `org-${made}`
      if (!organizationId) await createOrganization(db, seal, { id: organization })
      await createProject(db, seal, { id, organization })
      return { id, organizationId: organization }
    },
    run: ({ id }, lines, options) => importLines({ db, log: pino({ level: 'silent' }) }, id, lines, options),
    rows,
    row,
    async column({ id: project }, table, name, id) {
      const text = `select ${name} as value from ${table} where project_id = $1 and id = $2`
      return (await rows(text, [project, id]))[0]?.value
    },
    count: async ({ id }, table) =>
      Number((await row(`select count(*) as n from ${table} where project_id = $1`, [id])).n),
    now: async () => (await row('select db_clock() as now')).now!,
    async stop() {
      await db.close()
      await database.drop()
    },
  }
}

/** The result of an import of which all lines were written. */
export const allWritten = (written: number) => ({
  read: written,
  written,
  unchanged: 0,
  skipped: 0,
  erased: 0,
  rejected: 0,
  rejects: [],
})

/** Imports one source, `file`, with these lines, in this process. */
export function importLines(app: Importing, projectId: string, lines: Line[], options: Partial<ImportOptions> = {}) {
  const stream = () => Readable.from([Buffer.from(textOf(lines))])
  return importRecords(app, { projectId, ...options }, [{ name: 'file', stream }])
}

/** The same for lines that are all valid. */
export async function load(...given: Parameters<typeof importLines>): Promise<void> {
  assert.deepEqual((await importLines(...given)).rejects, [])
}

export const textOf = (lines: Line[]) =>
  lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('')

export const T = '2026-01-02T03:04:05.000006Z'

type Data = Record<string, unknown>
const builder =
  (record: string, least: Data) =>
  (data: Data = {}) => ({ record, data: { ...least, ...data } })

let payments = 0

/** A UUID that contains the number. */
export const uuid = (n: number) => `01900000-0000-7000-8000-${String(n).padStart(12, '0')}`

/** A minimal valid line of each kind; fields that are undefined are omitted. */
export const line = {
  funnel: builder('funnel', { id: 'funnel', title: 'Quiz', created_at: T }),
  experiment: builder('experiment', { id: 'experiment', created_at: T }),
  product: builder('product', { id: 'product', name: 'Monthly', status: 'active', created_at: T }),
  profile: builder('profile', { id: 'profile', created_at: T }),
  session: builder('session', { id: 'session', created_at: T, profile_id: 'profile' }),
  reply: builder('reply', {
    session_id: 'session',
    element: { id: 'element', type: 'Input' },
    screen: { id: 'screen', index: 0 },
  }),
  subscription: builder('subscription', {
    id: 'subscription',
    created_at: T,
    status: 'active',
    renews: true,
    price: 1999,
    currency: 'USD',
    billing_interval: 'month',
    billing_interval_count: 1,
    profile_id: 'profile',
    product_id: 'product',
  }),
  transaction: builder('transaction', {
    id: 'transaction',
    created_at: T,
    currency: 'USD',
    price: 1999,
    profile_id: 'profile',
  }),
  customer: builder('customer', { external_id: 'user' }),
  merchant_account: builder('merchant_account', { psp: 'simulator', psp_merchant_id: 'main' }),
  payment: (data: Data = {}) => ({
    record: 'payment',
    data: {
      external_id: 'user',
      order_id: uuid(1),
      trx_id: uuid(++payments),
      amount: 10,
      currency_code: 'USD',
      status: 'succeeded',
      psp: 'simulator',
      psp_transaction_type: 'sale',
      trx_created_at: T,
      ...data,
    },
  }),
}

/** Stores an order that Tundish made, of a new customer. */
export async function storeOrder(
  db: Pick<Db, 'query'>,
  { id, organizationId }: Project,
  order: string,
  providerKey: string,
  psp = 'stripe',
) {
  const names = { organization_id: organizationId, project_id: id, external_id: 'ada' }
  await addRow(db, 'customers', names)
  await addRow(db, 'orders', {
    ...{ ...names, order_id: order, source_trx_id: order, psp, provider_key: providerKey, idempotency_key: 'key' },
    ...{ amount: 10, currency_code: 'USD', status: 'failed', payment_method_token: 'pm', settled_at: 'now' },
  })
}
