// The database connection of one import: without limits of time, alone among the imports of its organization.
import type { Db } from '../lib/pg/db.ts'

export type Connection = Awaited<ReturnType<Db['connect']>>

// Beside those of the migrations (7482), the writers (7483), the sweep (7484) and the demo (7485).
const LOCK_CLASS = 7486

/**
 * A connection whose statements may take as long as they need. Give it back with `release(true)`: with it end the
 * temporary tables and the lock.
 */
export async function openSession(db: Db): Promise<Connection> {
  const connection = await db.connect()
  await connection.query(`
    select set_config(name, case name when 'work_mem' then '64MB' when 'temp_buffers' then '32MB' else '0' end, false)
    from pg_settings where name in ('statement_timeout', 'lock_timeout', 'idle_session_timeout', 'transaction_timeout')
      or (name = 'work_mem' and setting::bigint < 65536) or name = 'temp_buffers'`)
  // Not every system can tell that a client has gone while it works for it; then a killed import holds its locks longer.
  await connection.query("set client_connection_check_interval = '1s'").catch(() => {})
  return connection
}

/**
 * Waits until no other import writes into the organization. Imports could meet in any order on the same rows; one after
 * the other they need not count twice, look twice or break each other's locks.
 */
export async function waitForTurn({ query }: Connection, organizationId: string, waiting: () => void): Promise<void> {
  const lock = `(${LOCK_CLASS}, hashtext($1))`
  const [free] = await query(`select pg_try_advisory_lock${lock} as mine`, [organizationId])
  if (free!.mine === 't') return
  waiting()
  await query(`select pg_advisory_lock${lock}`, [organizationId])
}
