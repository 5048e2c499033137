// The turn of an import from a service: one process at a time has it, by a lock that ends with its connection.
import type { Db } from '../../lib/pg/db.ts'
import { sqlState } from '../../lib/pg/errors.ts'
import { endWithClient } from '../../lib/pg/stalled.ts'
import type { Query } from '../../lib/pg/types.ts'

// Next to the classes of the other advisory locks; see session.ts.
const LOCK_CLASS = 7487
// PostgreSQL frees the turn of a process that has been frozen, or cut off from the network, for this long.
const FROZEN_MS = 60_000

/** Takes the turn of this name on a connection of the caller; returns whether it was free. */
export async function tryTurn(query: Query, name: string): Promise<boolean> {
  await query(`select set_config('idle_session_timeout', '${FROZEN_MS}', false)`)
  await endWithClient(query)
  const isMine = await isTaken(query, 'pg_try_advisory_lock', name)
  if (isMine) stayAwake(query)
  return isMine
}

/**
 * Keeps the connection from being idle until it is closed. A statement that takes long has one behind it at most: `pg` warns of more.
 * PostgreSQL may refuse one, as in a transaction that has failed, or an operator may cancel it: the connection is still there.
 */
function stayAwake(query: Query): void {
  const wake = () =>
    query('select 1').then(
      () => stayAwake(query),
      (error) => {
        if (sqlState(error) !== undefined) stayAwake(query)
      },
    )
  setTimeout(wake, FROZEN_MS / 4).unref()
}

/** The same until the end of the transaction. */
export const tryTurnInTransaction = (query: Query, name: string) => isTaken(query, 'pg_try_advisory_xact_lock', name)

/**
 * Closes the connection of a turn. PostgreSQL frees the locks of a closed connection some moments later, and until then an import
 * that begins right away would be refused; so the turn is given back first.
 */
export async function releaseTurn({ query, release }: Awaited<ReturnType<Db['connect']>>): Promise<void> {
  await query('select pg_advisory_unlock_all()').catch(() => {})
  release(true)
}

async function isTaken(query: Query, take: string, name: string): Promise<boolean> {
  const [lock] = await query(`select ${take}(${LOCK_CLASS}, hashtext($1)) as mine`, [name])
  return lock!.mine === 't'
}
