// Locks an organization for the last step of a move: its charges have ended, and nothing can change it.
import { setTimeout as sleep } from 'node:timers/promises'
import { LOCK_CLASS } from '../../data/figures/lock.ts'
import { Refusal } from '../../lib/errors.ts'
import { isLockTimeout } from '../../lib/pg/errors.ts'
import { identifier } from '../backup/sql-names.ts'
import { type Connection, runAll } from './connection.ts'
import type { TenantTable } from './tenant-tables.ts'

// A charge that its process is still making is waited for: the provider's deadline, and some more.
const CHARGES_MS = 60_000
const LOCK_SECONDS = 10

/** Waits for the charges and refunds that processes of the old shard are making. */
export async function untilChargesEnd({ query }: Connection, organization: string): Promise<void> {
  const giveUpAt = performance.now() + CHARGES_MS
  for (;;) {
    const rows = await query(
      `select 1 from orders where organization_id = $1 and status = 'processing' and lease_until > db_clock()
       union all
       select 1 from refunds where organization_id = $1 and status = 'processing' and lease_until > db_clock()`,
      [organization],
    )
    if (rows.length === 0) return
    if (performance.now() > giveUpAt) throw new Refusal('A charge does not end: move the organization later.')
    await sleep(100)
  }
}

/**
 * Locks out imports, erasures and the computing of figures by the locks of its projects, and other background work by its rows. A new
 * order refers to its customer, so that none can be made.
 */
export async function hold(connection: Connection, tables: TenantTable[], organization: string, projects: string[]) {
  try {
    await lockAll(connection, tables, organization)
  } catch (error) {
    if (!isLockTimeout(error)) throw error
    throw new Refusal(
      `An import or another long change of "${organization}" did not end within ${LOCK_SECONDS} seconds: move it when it has. ${connection.shard.name} serves it again.`,
    )
  }
  const now = await projectsOf(connection, organization)
  if (now.length !== projects.length)
    throw new Refusal('A project was created during the move: move the organization again.')
}

async function lockAll(connection: Connection, tables: TenantTable[], organization: string): Promise<void> {
  const { query } = connection
  await query(`set local lock_timeout = '${LOCK_SECONDS}s'`)
  // Of writes, then of figures: those that were never computed have no row that could be locked.
  for (const lockClass of ['write_lock_class()', LOCK_CLASS])
    await query(
      `select pg_advisory_xact_lock(${lockClass}, number) from projects where organization_id = $1 order by number`,
      [organization],
    )
  const locks = tables.flatMap(({ name, condition, held }) =>
    held ? [`select count(*) from (select 1 from ${identifier(name)} where ${condition} for update) held`] : [],
  )
  await runAll(connection, locks)
}

export async function projectsOf({ query }: Pick<Connection, 'query'>, organization: string): Promise<string[]> {
  const rows = await query('select id from projects where organization_id = $1 order by id', [organization])
  return rows.map(({ id }) => id!)
}
