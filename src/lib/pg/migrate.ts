// Migrates a database: runs the pending files of migrations/, each in a transaction that holds the lock of migrations.
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { UsageError } from '../errors.ts'
import { refuseBeforeReading } from './before-reading.ts'
import { Client } from './client.ts'
import { isClash, isLockTimeout } from './errors.ts'
import { connectionOf } from './hosts.ts'
import { inTransaction } from './in-transaction.ts'
import { isPgpool, setRoleSettings, ThroughPgpool } from './pooler.ts'
import { noSchema, readOnly } from './reachable.ts'

export interface Migration {
  version: number
  name: string
  breaking: boolean
  sql: string
}

const FOLDER = new URL('../../../migrations/', import.meta.url)
const LOCK = 7482
const OLDEST_POSTGRES = 150000

/**
 * Migrates the database at `url` and returns the versions that were applied. Also sets `roleSettings` on the role, for
 * connections through a pooler. Throws a `UsageError` when the server is too old, when a new database is not
 * encoded in UTF8, or when the schema is from before 1.0, or newer than this program in a breaking way. `waiting` is called with a sentence each time a
 * migration gives way to other connections.
 */
export async function migrate(
  url: string,
  roleSettings: Record<string, string> = {},
  waiting: (sentence: string) => void = () => {},
): Promise<number[]> {
  const client = new Client({
    ...connectionOf(url),
    application_name: 'tundish migrate',
    connectionTimeoutMillis: 5_000,
  })
  // A crash of the server fails the query; its error event would end the program.
  client.on('error', () => {})
  await client.connect()
  try {
    if (await isPgpool(client)) throw new ThroughPgpool('The database is behind Pgpool-II.')
    await checkServer(client)
    const seen = await locked(client, waiting, () => applied(client))
    const known = await migrations()
    refuseBeforeReading([...seen].map(([version, { name }]) => ({ version, name })))
    refuseNewer(seen, known)
    const missing = known.filter(({ version }) => !seen.has(version))
    const done: number[] = []
    for (const migration of missing) if (await applyPatiently(client, migration, waiting)) done.push(migration.version)
    await locked(client, waiting, () => setRoleSettings(client, roleSettings))
    return done
  } finally {
    await client.end()
  }
}

const SAID_AFTER_MS = 3_000
const WAITING =
  'Another process is migrating the database: waiting for it. If there is none, an earlier version has left its lock on a connection of a pooler: restart the pooler.'

/**
 * Does the work in a transaction that holds the lock of migrations, which ends with it: a pooler keeps the connection and would keep
 * a lock, or a setting, of the session. The role's settings may include timeouts; a migration, or another process's, takes longer.
 */
async function locked<T>(client: pg.Client, waiting: (sentence: string) => void, work: () => Promise<T>): Promise<T> {
  return inTransaction(
    (text) => client.query(text),
    async () => {
      await client.query('set local standard_conforming_strings = on')
      await client.query('set local statement_timeout = 0')
      await client.query('set local lock_timeout = 0')
      const timer = setTimeout(waiting, SAID_AFTER_MS, WAITING)
      await client.query('select pg_advisory_xact_lock($1)', [LOCK]).finally(() => clearTimeout(timer))
      return work()
    },
  )
}

type Rows = (text: string) => Promise<Record<string, string | null>[]>

/** The versions of migrations that only a newer program knows, and whether this one refuses to start on them. */
export async function newerMigrations(query: Rows): Promise<{ versions: number[]; isBreaking: boolean }> {
  const known = new Set((await migrations()).map(({ version }) => version))
  const rows = await query('select version, breaking from schema_migrations order by version')
  const newer = rows.filter(({ version }) => !known.has(Number(version)))
  return {
    versions: newer.map(({ version }) => Number(version)),
    isBreaking: newer.some(({ breaking }) => breaking === 't'),
  }
}

/** The versions of this program's migrations that are not applied yet. */
export async function pendingMigrations(query: Rows): Promise<number[]> {
  // Other programs also have a table of this name, without the names.
  const rows = await query(`select version, to_jsonb(m) ->> 'name' as name from schema_migrations m`)
  const applied = rows.map(({ version, name }) => ({ version: Number(version), name: name ?? '' }))
  refuseBeforeReading(applied)
  const seen = new Set(applied.map(({ version }) => version))
  return (await migrations()).map(({ version }) => version).filter((version) => !seen.has(version))
}

interface ServerState {
  version: number
  encoding: string
  is_new: boolean
  is_standby: boolean
  schema: string | null
  role: string
  is_read_only: boolean
}

async function checkServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<ServerState>(
    `select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding,
       to_regclass('schema_migrations') is null as is_new, pg_is_in_recovery() as is_standby,
       current_schema() as schema, quote_ident(current_user) as role,
       current_setting('default_transaction_read_only') = 'on' as is_read_only`,
  )
  const { version, encoding, is_new, is_standby, schema, role, is_read_only } = rows[0]!
  if (version < OLDEST_POSTGRES) {
    throw new UsageError(
      'The database server is older than PostgreSQL 15: upgrade it, or point DATABASE_URL at a newer one.',
    )
  }
  if (is_standby) throw new UsageError(STANDBY.join(' '))
  if (is_read_only) throw new UsageError(readOnly(role).join(' '))
  if (schema === null) throw new UsageError(noSchema(role).join(' '))
  // A database with data is checked by the doctor.
  if (is_new && encoding !== 'UTF8') throw new UsageError(wrongEncoding(encoding).join(' '))
}

/** The message and fix for a server that cannot be written to. A recovery to a point in time may have paused there. */
export const STANDBY: [message: string, fix: string] = [
  'The server is a standby.',
  'Point DATABASE_URL at the primary. If it is being restored to a point in time, end that first: select pg_wal_replay_resume();',
]

/** The message and fix for a database that cannot store all of Unicode. */
export function wrongEncoding(encoding: string): [message: string, fix: string] {
  return [`The database is encoded in ${encoding}.`, 'Create a database with encoding UTF8.']
}

async function applied(client: pg.Client): Promise<Map<number, { name: string; breaking: boolean }>> {
  await client.query(`
    create table if not exists schema_migrations (
      version    int primary key,
      name       text not null,
      breaking   boolean not null,
      applied_at timestamptz not null default clock_timestamp()
    )`)
  const { rows } = await client
    .query<{ version: number; name: string; breaking: boolean }>(
      'select version, name, breaking from schema_migrations',
    )
    .catch((error) => {
      // Other programs also have a table of this name.
      throw foreignObject(error) ?? error
    })
  return new Map(rows.map(({ version, ...rest }) => [version, rest]))
}

let loaded: Promise<Migration[]> | undefined

/** Every migration this program knows, in order. */
export function migrations(): Promise<Migration[]> {
  loaded ??= readdir(FOLDER).then((names) =>
    Promise.all(
      names
        .filter((name) => name.endsWith('.sql'))
        .sort()
        .map(load),
    ),
  )
  return loaded
}

async function load(file: string): Promise<Migration> {
  const sql = await readFile(new URL(file, FOLDER), 'utf8')
  const version = Number(file.slice(0, 4))
  const breaking = /^-- breaking: (yes|no)\n/.exec(sql)?.[1]
  if (!Number.isInteger(version) || breaking === undefined)
    throw new Error(`Bug: ${file} lacks a number or "-- breaking:".`)
  return { version, name: file.slice(5, -4), breaking: breaking === 'yes', sql }
}

function refuseNewer(seen: Map<number, { name: string; breaking: boolean }>, known: Migration[]): void {
  const versions = new Set(known.map(({ version }) => version))
  const newer = [...seen].filter(([version, { breaking }]) => breaking && !versions.has(version))
  if (newer.length === 0) return
  const names = newer.map(([version, { name }]) => `${version} (${name})`).join(', ')
  throw new UsageError(`The database was migrated by a newer Tundish: ${names}. Run that version, or restore a backup.`)
}

// A migration that waits for a table makes all later statements on that table wait behind it. A backup or an import may
// keep a table for hours, so the migration gives up, and tries again after a pause. It does so before PostgreSQL looks for
// deadlocks (`deadlock_timeout`, a second): a request that waits for its tables could be ended instead of it.
const LOCK_TIMEOUT_MS = 500
const SHORTEST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 30_000

async function applyPatiently(
  client: pg.Client,
  migration: Migration,
  waiting: (sentence: string) => void,
): Promise<boolean> {
  for (let pauseMs = SHORTEST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      return await locked(client, waiting, () => apply(client, migration))
    } catch (error) {
      if (!isLockTimeout(error) && !isClash(error)) throw error
    }
    const { version, name } = migration
    waiting(
      `Migration ${version} (${name}) needs a table that another connection keeps: trying again in ${pauseMs / 1000} s.`,
    )
    await sleep(pauseMs)
  }
}

/** Returns false if another process has applied it. */
async function apply(client: pg.Client, { version, name, breaking, sql }: Migration): Promise<boolean> {
  const { rowCount } = await client.query('select from schema_migrations where version = $1', [version])
  if (rowCount !== 0) return false
  try {
    await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`)
    await client.query(sql)
    const row = [version, name, breaking]
    await client.query('insert into schema_migrations (version, name, breaking) values ($1, $2, $3)', row)
    return true
  } catch (error) {
    throw foreignObject(error) ?? error
  }
}

// PostgreSQL's codes for a table, function or type that exists already, and for a missing column.
const FOREIGN = ['42P07', '42723', '42710', '42703']

/** The error for objects of another program in the schema. PostgreSQL's message contains their names, but no values. */
function foreignObject(error: unknown): UsageError | undefined {
  const { code, message } = error as { code?: string; message: string }
  if (!FOREIGN.includes(code ?? '')) return undefined
  return new UsageError(
    `The database contains objects of another program (${message}): point DATABASE_URL at an empty database.`,
  )
}
