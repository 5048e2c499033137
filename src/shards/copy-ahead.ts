// Copies most of an organization to another shard while it is served, by PostgreSQL's logical replication with row filters.
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { identifier } from '../backup/sql-names.ts'
import { Refusal } from '../lib/errors.ts'
import { isUnavailable, sqlState } from '../lib/pg/errors.ts'
import { type Connection, connectTo } from './connection.ts'
import type { Shard } from './shard.ts'
import type { TenantTable } from './tenant-tables.ts'

const LOOK_MS = 200
// What is left to replicate when the last step begins; it is made up in a moment.
const NEARLY_BYTES = 1024 * 1024

/** What the names of all slots of moves begin with. */
export const SLOTS = 'tundish_move_'

/** The publication, the subscription and the slot have one name. */
const nameOf = (organization: string) =>
  `${SLOTS}${createHash('sha256').update(organization).digest('hex').slice(0, 16)}`

/** Refuses servers that cannot replicate, with what to do. */
export async function checkReplication(from: Connection, to: Connection): Promise<void> {
  const [source] = await from.query(`select current_setting('wal_level') as wal_level`)
  if (source!.wal_level !== 'logical')
    throw new Refusal(`Set wal_level = logical on the server of ${from.shard.name}, and restart it.`)
  const [target] = await to.query(`
    select rolsuper or exists (
      select from pg_roles g where g.rolname = 'pg_create_subscription' and pg_has_role(current_user, g.oid, 'member')
    ) as may from pg_roles where rolname = current_user`)
  if (target!.may !== 't')
    throw new Refusal(
      `The role of ${to.shard.name} may not create subscriptions: grant it pg_create_subscription, or on PostgreSQL 15 make it a superuser for the move.`,
    )
}

/** Begins to copy, and returns when the copy is complete and follows closely. */
export async function startCopy(
  from: Connection,
  to: Connection,
  organization: string,
  tables: readonly TenantTable[],
): Promise<void> {
  const name = nameOf(organization)
  const filters = tables.map(({ name: table, condition }) => `${identifier(table)} where (${condition})`)
  await from.query(`create publication ${name} for table ${filters.join(', ')}`)
  const address = pg.escapeLiteral(from.shard.replicationUrl)
  try {
    await to.query(`create subscription ${name} connection ${address} publication ${name}`)
  } catch (error) {
    if (isUnavailable(error) || sqlState(error) === '08006')
      throw new Refusal(
        `The server of ${to.shard.name} cannot reach the one of ${from.shard.name} by REPLICATION_DATABASE_URL (${(error as Error).message}).`,
      )
    throw error
  }
  while (!(await isCopied(to, name))) await sleep(LOOK_MS)
  const [behind] = await from.query('select pg_current_wal_lsn() as at')
  await untilReplicated(from, name, `'${behind!.at}'::pg_lsn - ${NEARLY_BYTES}`)
}

async function isCopied(to: Connection, name: string): Promise<boolean> {
  const [row] = await to.query(
    `select count(*) filter (where r.srsubstate not in ('r', 's')) as left
     from pg_subscription s join pg_subscription_rel r on r.srsubid = s.oid where s.subname = $1`,
    [name],
  )
  return row!.left === '0'
}

/** Waits until all that is committed on the old shard by now is on the new one. */
export async function finishCopy(from: Connection, organization: string): Promise<void> {
  const [row] = await from.query('select pg_current_wal_insert_lsn() as at')
  await flushLog(from.shard)
  await untilReplicated(from, nameOf(organization), `'${row!.at}'::pg_lsn`)
}

/**
 * Flushes the log by a commit of its own. PostgreSQL replicates only what is flushed, and on a quiet server nothing else
 * flushes the locks that the mover has just written, for up to 15 s.
 */
async function flushLog(shard: Shard): Promise<void> {
  const { query, close } = await connectTo(shard)
  try {
    await query('set synchronous_commit = local')
    await query(`select pg_logical_emit_message(true, 'tundish move', '')`)
  } finally {
    await close()
  }
}

const LONGEST_WAIT_MS = 60_000

async function untilReplicated(from: Connection, name: string, position: string): Promise<void> {
  const giveUpAt = performance.now() + LONGEST_WAIT_MS
  for (;;) {
    const [slot] = await from.query(
      `select confirmed_flush_lsn >= ${position} as done from pg_replication_slots where slot_name = $1`,
      [name],
    )
    if (!slot) throw new Refusal('The replication slot of the move was dropped: move the organization again.')
    if (slot.done === 't') return
    if (performance.now() > giveUpAt) throw new Refusal('The new shard does not keep up: move at a quieter time.')
    await sleep(LOOK_MS / 4)
  }
}

/** Removes the subscription with its slot, and the publication. Does nothing where there are none. */
export async function endCopy(from: Connection, to: Connection, organization: string): Promise<void> {
  const name = nameOf(organization)
  const [there] = await to.query('select 1 from pg_subscription where subname = $1', [name])
  if (there) await to.query(`drop subscription ${name}`)
  await from.query(`drop publication if exists ${name}`)
}
