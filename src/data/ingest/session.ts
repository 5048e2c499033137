// The database connection of one import: without timeouts, and one import at a time for each organization.
import { IMPORT_TURN } from '../../core/tenants/import-turn.ts'
import type { Db } from '../../lib/pg/db.ts'
import { sqlState } from '../../lib/pg/errors.ts'
import { endWithClient, STALLED_MS } from '../../lib/pg/stalled.ts'
import type { Query } from '../../lib/pg/types.ts'
import { createHelperTables } from './helper-tables.ts'

export type Connection = Awaited<ReturnType<typeof openSession>>

/**
 * A connection whose statements have no timeout. Release it with `release(true)`: that ends the
 * temporary tables and the lock.
 */
export async function openSession(db: Db) {
  const connection = await db.connect()
  let isStalled = false
  connection.client.on('error', (error) => {
    isStalled ||= STALLED.has(sqlState(error) ?? '')
  })
  try {
    await prepare(connection.query)
  } catch (error) {
    connection.release(true)
    throw error
  }
  return {
    ...connection,
    /** Whether PostgreSQL ended the connection because this process stood still while others waited. */
    isStalled: (error: unknown) => isStalled || STALLED.has(sqlState(error) ?? ''),
  }
}

async function prepare(query: Query): Promise<void> {
  await query(`
    select set_config(name, case name when 'work_mem' then '64MB' when 'temp_buffers' then '32MB' else '0' end, false)
    from pg_settings where name in ('statement_timeout', 'lock_timeout', 'idle_session_timeout', 'transaction_timeout')
      or (name = 'work_mem' and setting::bigint < 65536) or name = 'temp_buffers'`)
  await createHelperTables(query)
  await endWithClient(query)
}

// idle_session_timeout, idle_in_transaction_session_timeout
const STALLED = new Set(['57P05', '25P03'])

/**
 * Waits until no other import writes into the organization. Concurrent imports would lock the same rows in different
 * orders; one at a time they cannot deadlock, and each sees the counters of the one before. From here to `endTurn` PostgreSQL
 * ends the connection when it receives nothing for some seconds between two statements: other imports wait for the turn, and
 * during the transaction also erasures and syncs. How long a statement takes does not matter.
 */
export async function waitForTurn({ query }: Connection, organizationId: string, waiting: () => void): Promise<void> {
  // First, because a process may be frozen while it waits, and then gets its turn.
  await query(END_WHEN_STALLED)
  const [free] = await query(`select pg_try_advisory_lock${IMPORT_TURN} as mine`, [organizationId])
  if (free!.mine === 't') return
  waiting()
  await query(`select pg_advisory_lock${IMPORT_TURN}`, [organizationId])
}

// The last one is for a result that a frozen process does not receive, where the network has gone too.
const END_WHEN_STALLED = `
  select set_config(name, '${STALLED_MS}', false) from pg_settings
  where name in ('idle_session_timeout', 'idle_in_transaction_session_timeout', 'tcp_user_timeout')`

/** Lets the next import write. The connection may stand still again. */
export async function endTurn({ query }: Connection, organizationId: string): Promise<void> {
  await query(`select pg_advisory_unlock${IMPORT_TURN}, set_config('idle_session_timeout', '0', false)`, [
    organizationId,
  ])
}

/** Keeps the turn during work outside the database, such as writing to a slow disk, as long as this process is not frozen. */
export async function keepTurn<T>({ query }: Connection, work: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => query('select 1').catch(() => {}), STALLED_MS / 4)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}
