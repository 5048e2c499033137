// Connections through a pooler in transaction mode, such as PgBouncer: each transaction may run on another server connection.
import pg from 'pg'
import type { Guarded } from './liveness.ts'
import { openPipelines, type Pipelines } from './pipelines.ts'
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

/** The sentence for session settings that connections of the pooler lack. */
export const reconnectSentence = (settings: string[]) =>
  `The pooler of DATABASE_URL has connections that are older than the role's settings (${settings.join(', ')}): send RECONNECT to its console, or restart it.`

/**
 * Sets the session settings on the role, for this database only, because a pooler's connections get no other settings.
 */
export async function setRoleSettings(client: pg.Client, settings: Record<string, string>): Promise<void> {
  const { rows } = await client.query<{ database: string; settings: string[] }>(`
    select d.datname as database, coalesce(s.setconfig, '{}') as settings
    from pg_database d left join pg_db_role_setting s
      on s.setdatabase = d.oid and s.setrole = (select oid from pg_roles where rolname = current_user)
    where d.datname = current_database()`)
  const [found] = rows
  const there = new Set(found!.settings.map((setting) => setting.toLowerCase()))
  const database = pg.escapeIdentifier(found!.database)
  for (const [name, value] of Object.entries(settings)) {
    if (there.has(`${name}=${value}`.toLowerCase())) continue
    await client.query(`alter role current_user in database ${database} set ${name} = ${pg.escapeLiteral(value)}`)
  }
}

/** The settings that a connection of the pooler lacks. */
export async function missingSettings(query: Query, settings: Record<string, string>): Promise<string[]> {
  const names = Object.keys(settings).map((name) => name.toLowerCase())
  const rows = await query('select lower(name) as name, setting from pg_settings where lower(name) = any($1)', [names])
  const now = new Map(rows.map(({ name, setting }) => [name!, setting!]))
  // ISO is shown as "ISO, MDY".
  const has = (name: string, value: string) => now.get(name.toLowerCase())?.split(',')[0] === value
  return Object.entries(settings).flatMap(([name, value]) => (has(name, value) ? [] : [name]))
}
