// The database connection of one import: without timeouts, and one import at a time for each organization.
import type { Db } from '../lib/pg/db.ts'

export type Connection = Awaited<ReturnType<Db['connect']>>

// Beside those of the migrations (7482), the writers (7483), the sweep (7484), and the demo and moves of shards (7485).
const LOCK_CLASS = 7486

/**
 * A connection whose statements have no timeout. Release it with `release(true)`: that ends the
 * temporary tables and the lock.
 */
export async function openSession(db: Db): Promise<Connection> {
  const connection = await db.connect()
  await connection.query(`
    select set_config(name, case name when 'work_mem' then '64MB' when 'temp_buffers' then '32MB' else '0' end, false)
    from pg_settings where name in ('statement_timeout', 'lock_timeout', 'idle_session_timeout', 'transaction_timeout')
      or (name = 'work_mem' and setting::bigint < 65536) or name = 'temp_buffers'`)
  // Not every system can detect a lost client during a statement; there a killed import holds its locks longer.
  await connection.query("set client_connection_check_interval = '1s'").catch(() => {})
  return connection
}

/**
 * Waits until no other import writes into the organization. Concurrent imports would lock the same rows in different
 * orders; one at a time they cannot deadlock, and each sees the counters of the one before.
 */
export async function waitForTurn({ query }: Connection, organizationId: string, waiting: () => void): Promise<void> {
  const lock = `(${LOCK_CLASS}, hashtext($1))`
  const [free] = await query(`select pg_try_advisory_lock${lock} as mine`, [organizationId])
  if (free!.mine === 't') return
  waiting()
  await query(`select pg_advisory_lock${lock}`, [organizationId])
}
