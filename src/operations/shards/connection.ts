// A connection to a shard's database for a move: no timeouts, values as text.
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { Refusal, UsageError } from '../../lib/errors.ts'
import { Client } from '../../lib/pg/client.ts'
import { clientConfig } from '../../lib/pg/client-config.ts'
import { causeOf, sqlState } from '../../lib/pg/errors.ts'
import { wireOf } from '../../lib/pg/protocol.ts'
import { reachable } from '../../lib/pg/reachable.ts'
import { endWithClient } from '../../lib/pg/stalled.ts'
import type { NamedRow, Query } from '../../lib/pg/types.ts'
import { columnList } from '../backup/catalogue.ts'
import { identifier } from '../backup/sql-names.ts'
import type { Shard } from './shard.ts'
import type { TenantTable } from './tenant-tables.ts'

export interface Connection {
  shard: Shard
  /** Identifies the database: two addresses of one database have the same. */
  database: string
  client: pg.Client
  query: Query
  close(): Promise<void>
  /** Breaks it: the statement that is under way fails. */
  destroy(): void
}

/** Connects; an aborted `signal` breaks the connection, also while it is made. */
export async function connectTo(shard: Shard, signal?: AbortSignal): Promise<Connection> {
  const settings = { url: shard.databaseUrl, applicationName: 'tundish shards' }
  const client = new Client(clientConfig(signal ? { ...settings, connectTimeoutMs: 0 } : settings))
  // A broken connection fails the statement that is under way.
  client.on('error', () => {})
  const destroy = () => void wireOf(client).stream.destroy()
  signal?.addEventListener('abort', destroy, { once: true })
  await reachable(client.connect())
  const query = (async (text: string, params: unknown[] = []) =>
    (await client.query<NamedRow>(text, params)).rows) as unknown as Query
  await query(`
    select set_config(name, '0', false) from pg_settings where name in ('statement_timeout', 'lock_timeout',
      'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout')`)
  // Otherwise a statement that waits, as for a lock, would keep the locks of a program that was killed.
  await endWithClient(query)
  // What one shard deletes, the other must not lose in a crash.
  await query(
    `select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'`,
  )
  const [found] = await query(DATABASE)
  if (found!.is_empty === 't') {
    await client.end()
    throw new NoTables(`The shard ${shard.name} has no tables of Tundish: start Tundish there.`)
  }
  signal?.removeEventListener('abort', destroy)
  return { shard, database: found!.id!, client, query, close: () => client.end().catch(() => {}), destroy }
}

const DATABASE = `
  select concat(pg_postmaster_start_time(), ' ', oid) as id, to_regclass('organizations') is null as is_empty
  from pg_database where datname = current_database()`

export class NoTables extends Refusal {}

/** Runs `work` with a connection to each, and closes both. Refuses two that lead to one database. */
export async function withBoth<T>(
  [one, other]: readonly [Shard, Shard],
  work: (one: Connection, other: Connection) => Promise<T>,
): Promise<T> {
  const first = await connectToNamed(one)
  try {
    const second = await connectToNamed(other)
    if (first.database === second.database) {
      await second.close()
      throw new Refusal(`The shards ${one.name} and ${other.name} have the same database: correct their settings.`)
    }
    return await work(first, second).finally(second.close)
  } finally {
    await first.close()
  }
}

const connectToNamed = (shard: Shard) =>
  connectTo(shard).catch((error) => {
    throw error instanceof UsageError ? new UsageError(`${shard.name}: ${error.message}`) : error
  })

/**
 * Writes rows on this connection without checking foreign keys, as replication does: they were checked where they were
 * written first. Returns false where the role may not.
 */
export async function skipForeignKeyChecks({ query }: Connection): Promise<boolean> {
  try {
    await query('set session_replication_role = replica')
    return true
  } catch (error) {
    if (sqlState(error) !== INSUFFICIENT_PRIVILEGE) throw error
    return false
  }
}

export const INSUFFICIENT_PRIVILEGE = '42501'

/** Copies the organization's rows of a table from one shard to another, and returns how many. */
export async function copyRows(from: Connection, to: Connection, table: TenantTable): Promise<number> {
  const list = columnList(table.columns)
  const source = from.client.query(
    copyTo(`copy (select ${list} from ${identifier(table.name)} where ${table.condition}) to stdout`),
  )
  await pipeline(source, to.client.query(copyFrom(`copy ${identifier(table.name)} (${list}) from stdin`)))
  return source.rowCount
}

/** How many rows of the organization each of these tables has, in one round trip: a busy server makes each of them long. */
export async function countRows({ query }: Connection, tables: readonly TenantTable[]): Promise<Map<string, number>> {
  const counts = tables.map(({ name, condition }) => `(select count(*) from ${identifier(name)} where ${condition})`)
  const [row] = await query<{ counts: string }>(`select json_build_array(${counts.join(', ')}) as counts`)
  const numbers = JSON.parse(row!.counts!) as number[]
  return new Map(tables.map(({ name }, n) => [name, numbers[n]!]))
}

/** Runs these statements one after another in one round trip. */
export async function runAll({ client }: Connection, statements: readonly string[]): Promise<void> {
  await client.query(statements.join(';\n'))
}

/** Removes the organization's rows from these tables. */
export const removeRows = (connection: Connection, tables: readonly TenantTable[]): Promise<void> =>
  runAll(
    connection,
    tables.toReversed().map(({ name, condition }) => `delete from ${identifier(name)} where ${condition}`),
  )

/** The error of a move that lost the connection to a shard. The same command undoes or finishes what is left. */
export const interruptedError = (organization: string, error: unknown) =>
  new Refusal(
    `The move of "${organization}" was broken off (${causeOf(error)}). Run the same command again: it finishes the move, or begins it anew.`,
  )
