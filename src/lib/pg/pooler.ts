// Connections through a pooler in transaction mode, such as PgBouncer: each transaction may run on another server connection.
import pg from 'pg'
import { Client } from './client.ts'
import { sqlState } from './errors.ts'
import { connectionOf } from './hosts.ts'
import type { Guarded } from './liveness.ts'
import { openPipelines, type Pipelines } from './pipelines.ts'
import { wireOf } from './protocol.ts'
import type { Query, Statement } from './types.ts'

/** The statement without its name, so that it is not prepared. */
export function nameless<S extends string | Statement>(statement: S): S {
  if (typeof statement === 'string') return statement
  return Object.assign({}, statement, { name: undefined })
}

/**
 * Connections for short reads that send a statement only after the result of the one before. A pooler may give the server
 * connection to another client between two results, even if a part of the next statement has arrived. PgBouncer 1.18 then
 * mixes the statements of two clients (tried).
 */
export function openUnpipelined(config: pg.ClientConfig, connections: number, guarded: Guarded): Pipelines {
  const all = Array.from({ length: connections }, () => openPipelines(config, 1, guarded))
  const idle = [...all]
  const waiting: ((one: Pipelines) => void)[] = []

  function giveBack(one: Pipelines): void {
    const next = waiting.shift()
    if (next) next(one)
    else idle.push(one)
  }

  return {
    async read(statement, params, take) {
      const one = idle.pop() ?? (await new Promise<Pipelines>((resolve) => waiting.push(resolve)))
      try {
        return await one.read(nameless(statement), params, take)
      } finally {
        giveBack(one)
      }
    },
    underWay: () => all.length - idle.length + waiting.length,
    async close() {
      await Promise.all(all.map((one) => one.close()))
    },
  }
}

/** Statement mode, in which a pooler ends the connection of a client that begins a transaction. */
const NO_TRANSACTIONS = /statement pooling mode/

// PostgreSQL's codes for a prepared statement that exists already, or no more: another client has had the connection.
const OF_OTHERS = ['42P05', '26000']

/**
 * What to do if an error shows a pooler at the address of this setting: it refused session settings or transactions, or gave the
 * connection to another client between transactions.
 */
export function fixForPooler(error: unknown, setting: string): string | undefined {
  if (error instanceof ThroughPgpool) return throughPgpool(setting).join(' ')
  const { message } = error as Error
  if (NO_TRANSACTIONS.test(message) && setting === 'DATABASE_URL') {
    return 'DATABASE_URL leads through a pooler in statement mode, which refuses transactions: set its pool_mode to transaction.'
  }
  const shows = /startup parameter/.test(message) || NO_TRANSACTIONS.test(message)
  return shows || OF_OTHERS.includes(sqlState(error) ?? '') ? needsDirectUrl(setting) : undefined
}

/** The sentence for a pooler at the address of this setting. */
export const needsDirectUrl = (setting: string) =>
  `${setting} leads through a pooler: set DIRECT_DATABASE_URL to the address of the database itself, for work that needs a session.`

/** A connection that must not lead through Pgpool-II does. */
export class ThroughPgpool extends Error {}

/** The message and fix for Pgpool-II at the address of this setting. */
export function throughPgpool(setting: string): [message: string, fix: string] {
  const message = `${setting} leads through Pgpool-II, which mixes up statements that are sent together.`
  return [message, `Set ${setting} to the address of PostgreSQL itself.`]
}

interface Session {
  client: pg.ClientBase & { processID?: number | null }
  query: Query
  release(): void
}

/**
 * Whether a pooler gives these connections to several clients in turn, as in transaction mode. In session mode each client keeps
 * its connection to the server while it is connected.
 */
export async function isShared(connect: () => Promise<Session>): Promise<boolean> {
  const one = await connect()
  try {
    const first = await backendOf(one.query)
    // At the start of a connection a pooler sends an invented number in place of the server's process ID.
    if (Number(first.pid) === one.client.processID) return false
    const other = await connect()
    try {
      const second = await backendOf(other.query)
      // A pooler may use its connections in turn: then two queries in a row are on different ones. Repeated, for other clients use it, too.
      for (let round = 0; round < 3; round++) {
        if ((await backendOf(other.query)).id !== second.id || (await backendOf(one.query)).id !== first.id) return true
      }
      return second.id === first.id
    } finally {
      other.release()
    }
  } finally {
    one.release()
  }
}

async function backendOf(query: Query): Promise<{ pid: string; id: string }> {
  const [row] = await query<{ pid: string; id: string }>(
    "select pid, concat_ws(' ', pid, backend_start) as id from pg_stat_activity where pid = pg_backend_pid()",
  )
  return row!
}

/** Whether the connection leads through Pgpool-II, which sends the number of the server's process, as PostgreSQL itself. */
export async function isPgpool(client: pg.Client & { processID?: number | null }): Promise<boolean> {
  const { rows } = await client.query<{ pid: number; port: number | null }>(
    'select pg_backend_pid() as pid, inet_client_port() as port',
  )
  const { pid, port } = rows[0]!
  // PostgreSQL logs the question below as an error: it is asked only if something else forwards the connection. A socket in a
  // folder has no port.
  if ((port ?? undefined) === wireOf(client).stream.localPort || pid !== client.processID) return false
  try {
    await client.query('show pool_version')
    return true
  } catch (error) {
    if (sqlState(error) === undefined) throw error
    return false
  }
}

/** The same for an address, by a connection that is closed at once. */
export async function isPgpoolAt(url: string): Promise<boolean> {
  const client = new Client({ ...connectionOf(url), connectionTimeoutMillis: 5_000 })
  client.on('error', () => {})
  await client.connect()
  return isPgpool(client).finally(() => client.end())
}

/**
 * Sets the session settings on the role, for this database only, because a pooler's connections get no other settings.
 */
export async function setRoleSettings(client: pg.Client, settings: Record<string, string>): Promise<void> {
  const query = async (text: string) => (await client.query(text)).rows
  const [current] = await query('select current_database() as database')
  const database = pg.escapeIdentifier(current.database)
  for (const name of await missingOfRole(query, settings))
    await query(`alter role current_user in database ${database} set ${name} = ${pg.escapeLiteral(settings[name]!)}`)
}

async function missingOfRole(
  query: (text: string) => Promise<{ [name: string]: string | null }[]>,
  settings: Record<string, string>,
) {
  const rows = await query(`
    select unnest(setconfig) as setting from pg_db_role_setting
    where setdatabase = (select oid from pg_database where datname = current_database())
      and setrole = (select oid from pg_roles where rolname = current_user)`)
  const there = new Set(rows.map(({ setting }) => setting!.toLowerCase()))
  return Object.keys(settings).filter((name) => !there.has(`${name}=${settings[name]}`.toLowerCase()))
}

/** The settings that the pooler's connections lack, why, and what to do; undefined if they have all of them. */
export async function lackedSettings(
  pooled: Query,
  direct: Query,
  settings: Record<string, string>,
): Promise<{ names: string[]; message: string; fix: string } | undefined> {
  const names = await missingSettings(pooled, settings)
  if (names.length === 0) return undefined
  const list = names.join(', ')
  const [pooledRole, directRole] = await Promise.all([pooled, direct].map(roleOf))
  if (pooledRole !== directRole) {
    const message = `DATABASE_URL has the role "${pooledRole}", which lacks settings of the role "${directRole}" of DIRECT_DATABASE_URL (${list}).`
    return { names, message, fix: 'Use one role in both.' }
  }
  if ((await missingOfRole(direct, settings)).length > 0) {
    const message = `The role "${directRole}" lacks settings (${list}), which each start sets.`
    return { names, message, fix: 'Restart Tundish with the present settings, then send RECONNECT to the pooler.' }
  }
  const message = `The pooler of DATABASE_URL has connections that are older than the role's settings (${list}).`
  return { names, message, fix: 'Send RECONNECT to its console, or restart it.' }
}

async function roleOf(query: Query): Promise<string> {
  const [row] = await query('select current_user as role')
  return row!.role!
}

/** The settings that a connection lacks. Without the address of the database itself, it is a pooler's if it lacks any. */
export async function missingSettings(query: Query, settings: Record<string, string>): Promise<string[]> {
  const names = Object.keys(settings).map((name) => name.toLowerCase())
  const rows = await query('select lower(name) as name, setting from pg_settings where lower(name) = any($1)', [names])
  const now = new Map(rows.map(({ name, setting }) => [name!, setting!]))
  // ISO is shown as "ISO, MDY".
  const has = (name: string, value: string) => now.get(name.toLowerCase())?.split(',')[0] === value
  return Object.entries(settings).flatMap(([name, value]) => (has(name, value) ? [] : [name]))
}
