// Installations to back up and restore: each its own database and data folder, commands on them, and their content.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { after } from 'node:test'
import { createOrganization, createProject } from '../../../src/core/tenants/tenants.ts'
import { type Db, openDb } from '../../../src/lib/pg/db.ts'
import { openSeal } from '../../../src/lib/secrets.ts'
import { type Outcome, tundish } from '../../support/cli.ts'
import { BASICS, insert } from '../../support/data.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { freshDatabase } from '../../support/postgres.ts'

export const MASTER_KEY = randomBytes(32).toString('base64')

/** A backup that the last program before 1.0 made of what `fill` writes. */
export const BEFORE_1_0 = {
  file: join(import.meta.dirname, 'before-1.0.backup'),
  masterKey: Buffer.alloc(32, 7).toString('base64'),
}

export interface Installation {
  db: Db
  folder: string
  ledger: string
  env: Record<string, string>
  run(...args: string[]): Promise<Outcome>
  /** The same with `--json`; throws unless it ended well. */
  json(...args: string[]): Promise<Record<string, unknown>>
  remove(): Promise<void>
}

/** An empty, migrated database; with `from`, it uses that data folder, as on a machine that has lost only its database. */
export async function install(from?: Installation): Promise<Installation> {
  const { url, drop } = await freshDatabase()
  const folder = from?.folder ?? temporaryFolder()
  const env = { DATABASE_URL: url, DATA_DIR: folder, MASTER_KEY }
  const db = openDb({ url, applicationName: 'test', connections: 4, readConnections: 1 })
  const run = (...args: string[]) => tundish(args, env)
  return {
    db,
    folder,
    ledger: join(folder, 'erasures.ndjson'),
    env,
    run,
    async json(...args) {
      const { code, stdout, stderr } = await run(...args, '--json')
      if (code !== 0) throw new Error(`Exit code ${code}: ${stderr}${stdout}`)
      return JSON.parse(stdout)
    },
    async remove() {
      await db.close()
      await drop()
    },
  }
}

/** For the tests of a file: an installation with data, an empty one, and the path of a backup with this name. */
export async function openInstallations(backup: string) {
  const source = await install()
  const target = await install()
  after(async () => {
    await source.remove()
    await target.remove()
  })
  await fill(source)
  return { source, target, file: join(source.folder, backup) }
}

export const PROJECT = { id: 'app', organizationId: 'shop' }

/** Creates the organization `shop` with its project `app`, and at least one row in every table. */
export async function fill({ db }: Installation): Promise<void> {
  const seal = openSeal(Buffer.from(MASTER_KEY, 'base64'))
  await db.query(`insert into instance (name, value) values ('master key', $1)`, [seal.fingerprint])
  await createOrganization(db, seal, { id: 'shop' })
  await createProject(db, seal, { id: 'app', organization: 'shop' })
  await insert(db, PROJECT, {
    ...BASICS,
    profiles: [
      { id: 'profile', email: 'Ada@example.com', phone: '+1' },
      // Characters that COPY has to escape, and that would end its rows otherwise.
      { id: '\\.', locale: '\\N', country: '' },
      { id: 'odd', locale: 'tab\tline\nreturn\r\\.\n\\\\ "quotes" \u{1f600}', country: null },
    ],
    replies: [{ session_id: 'session', value: 'Yes\n\\.\n' }],
    subscriptions: [{ id: 'subscription', psp_id: 'x' }],
    transactions: [{ id: 'transaction', subscription_id: 'subscription' }],
    customers: [{ external_id: 'user', profile_id: 'profile', email: 'Ada@example.com' }],
    orders: [{ external_id: 'user', order_id: ORDER, amount: '10.50' }],
    events: [{ id: EVENT, type: 'charge.succeeded', object_id: ORDER, profile_id: 'profile' }],
  })
  for (const statement of MORE) await db.query(statement)
}

const ORDER = '01900000-0000-7000-8000-000000000001'
const EVENT = '01900000-0000-7000-8000-000000000002'
const ENDPOINT = '01900000-0000-7000-8000-000000000003'
const AT = `'2026-01-02 03:04:05.000006+00'`

const MORE = [
  'insert into replica_heartbeat default values',
  `insert into erasure_marks values ('app', 1)`,
  `insert into erasures values ('app', 'gone', ${AT})`,
  `insert into merchant_accounts values ('shop', 'simulator', 'merchant', 'eu', '["USD"]', ${AT}, ${AT})`,
  `insert into exchange_rates values ('shop', 'USD', '2026-01-02', 1.0912345678901234567890)`,
  `insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at,
     amount, currency_code, status, psp, psp_transaction_type)
   values ('shop', 'user', false, ${AT}, '${ORDER}', '${ORDER}', ${AT}, 10.50, 'USD', 'succeeded', 'simulator', 'sale')`,
  `insert into refunds (organization_id, refund_id, order_id, external_id, amount, currency_code, status, provider_key,
     created_at, settled_at, updated_at)
   values ('shop', '${EVENT}', '${ORDER}', 'user', 1, 'USD', 'failed', 'key', ${AT}, ${AT}, ${AT})`,
  `insert into consumables values ('shop', '${EVENT}', '${ORDER}', 'user', 10.50, 'USD', true, ${AT}, null, ${AT})`,
  `insert into order_log values ('shop', '${ORDER}', ${AT}, 'charge', null, 'succeeded', 12)`,
  `insert into webhook_endpoints (project_id, id, url, created_at, updated_at)
   values ('app', '${ENDPOINT}', 'https://example.com', ${AT}, ${AT})`,
  `insert into webhook_deliveries (project_id, event_id, endpoint_id, created_at, next_attempt_at)
   values ('app', '${EVENT}', '${ENDPOINT}', ${AT}, ${AT})`,
  `insert into webhook_attempts values ('app', '${EVENT}', '${ENDPOINT}', 1, ${AT}, 5, 200, null, 'fine')`,
  `insert into operator_keys values ('${EVENT}', 'Ada', decode(repeat('ab', 32), 'hex'), 'read', ${AT}, null, null)`,
]

/** Every row of every table as text, by table. */
export async function contents(db: Db): Promise<Record<string, (string | null)[]>> {
  const tables = await db.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' order by 1`,
  )
  const all: Record<string, (string | null)[]> = {}
  for (const { name } of tables) {
    const rows = await db.query(`select t::text as row from "${name.replaceAll('"', '""')}" t order by 1`)
    all[name] = rows.map(({ row }) => row!)
  }
  return all
}

// Values that a restore raises or adds, or that stay those of the installation.
const OF_ITS_OWN = [
  'audit_head',
  'audit_log',
  'commit_beat',
  'organization_clocks',
  'project_clocks',
  'schema_migrations',
  'unlisted_accounts',
]

/** The rows that a backup and its restore must keep unchanged. */
export async function kept(db: Db): Promise<Record<string, (string | null)[]>> {
  const all = await contents(db)
  const rows = await db.query('select to_jsonb(o)::text as row from organizations o order by 1')
  all.organizations = rows.map(({ row }) => row!)
  // What the restore has found; see settings.slow.test.ts.
  all.instance = all.instance!.filter((row) => !row!.startsWith('("restored '))
  return Object.fromEntries(Object.entries(all).filter(([table]) => !OF_ITS_OWN.includes(table)))
}
