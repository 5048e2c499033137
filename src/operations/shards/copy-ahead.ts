// Copies most of an organization to another shard while it is served, by PostgreSQL's logical replication with row filters.
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { Refusal } from '../../lib/errors.ts'
import { isUnavailable, sqlState } from '../../lib/pg/errors.ts'
import { identifier } from '../backup/sql-names.ts'
import { type Connection, connectTo, INSUFFICIENT_PRIVILEGE } from './connection.ts'
import type { Shard } from './shard.ts'
import type { TenantTable } from './tenant-tables.ts'

const LOOK_MS = 200
// Failures without any progress. One may be a lost connection, or a slot that is not free yet.
const MAX_FAILURES = 3
const STALLED_MS = 15_000
// Not all failures are counted, such as that of a slot that was dropped; and other moves may have all of PostgreSQL's workers.
const IDLE_MS = 60_000
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
  if (await areOneServer(from, to))
    throw new Refusal(
      `${from.shard.name} and ${to.shard.name} are databases of one PostgreSQL server, which cannot replicate to itself: each shard needs its own server.`,
    )
  const [target] = await to.query(`
    select rolsuper or exists (
      select from pg_roles g where g.rolname = 'pg_create_subscription' and pg_has_role(current_user, g.oid, 'member')
    ) as may from pg_roles where rolname = current_user`)
  if (target!.may !== 't')
    throw new Refusal(
      `The role of ${to.shard.name} may not create subscriptions: grant it pg_create_subscription, or on PostgreSQL 15 make it a superuser for the move.`,
    )
}

/** Whether both are databases of one server. A standby that was promoted has the same identifier as its former primary. */
async function areOneServer(...both: Connection[]): Promise<boolean> {
  const [one, other] = await Promise.all(
    both.map(({ query }) =>
      query('select system_identifier, pg_postmaster_start_time() as since from pg_control_system()'),
    ),
  )
  return JSON.stringify(one) === JSON.stringify(other)
}

const SYNTAX_ERROR = '42601'

/** PostgreSQL's message, which has the part of the address that is wrong. */
function withoutPassword(message: string, address: string): string {
  const password = /:\/\/[^:@/]*:([^@]+)@/.exec(address)?.[1]
  return (password === undefined ? message : message.replaceAll(password, '…')).trim()
}

/** Begins to copy, and returns when the copy is complete and follows closely. */
export async function startCopy(
  from: Connection,
  to: Connection,
  organization: string,
  tables: readonly TenantTable[],
): Promise<void> {
  const name = nameOf(organization)
  await publish(from, name, tables)
  const address = pg.escapeLiteral(from.shard.replicationUrl)
  try {
    await to.query(`create subscription ${name} connection ${address} publication ${name} with (create_slot = false)`)
  } catch (error) {
    if (sqlState(error) === SYNTAX_ERROR)
      throw new Refusal(
        `The server of ${to.shard.name} does not understand the address of ${from.shard.name} (${withoutPassword((error as Error).message, from.shard.replicationUrl)}): set REPLICATION_DATABASE_URL of ${from.shard.name}.`,
      )
    if (isUnavailable(error) || sqlState(error) === '08006')
      throw new Refusal(
        `The server of ${to.shard.name} cannot reach the one of ${from.shard.name} by REPLICATION_DATABASE_URL (${(error as Error).message}).`,
      )
    throw error
  }
  await untilCopied(from, to, name)
  const [behind] = await from.query('select pg_current_wal_lsn() as at')
  await untilReplicated(from, to, name, `'${behind!.at}'::pg_lsn - ${NEARLY_BYTES}`)
}

async function publish({ shard, query }: Connection, name: string, tables: readonly TenantTable[]): Promise<void> {
  const filters = tables.map(({ name: table, condition }) => `${identifier(table)} where (${condition})`)
  try {
    await query(`create publication ${name} for table ${filters.join(', ')}`)
    // Before the subscription: creating a slot waits for all transactions that write on this server. If the subscription
    // created it, in a transaction on the other one, two moves in opposite directions would wait for each other without end.
    await query(`select pg_create_logical_replication_slot($1, 'pgoutput')`, [name])
  } catch (error) {
    if (sqlState(error) !== INSUFFICIENT_PRIVILEGE) throw error
    throw new Refusal(
      `The role of ${shard.name} may not replicate (${(error as Error).message}): run "alter role … replication" there; its tables must be its own.`,
    )
  }
}

/** Waits for the copy of all tables. Throws a `Refusal` when PostgreSQL only fails: it would try without end. */
async function untilCopied(from: Connection, to: Connection, name: string): Promise<void> {
  let last = { left: '', failures: 0, atMs: performance.now() }
  for (;;) {
    const { left, working, failures } = await progressOf(to, name)
    if (left === '0') return
    // So that no balancer closes the idle connection, and one that is lost is noticed before the copy ends.
    await from.query('select 1')
    if (working || left !== last.left) last = { left, failures, atMs: performance.now() }
    const isFailing = failures - last.failures >= MAX_FAILURES
    if (performance.now() - last.atMs > (isFailing ? STALLED_MS : IDLE_MS))
      throw new Refusal(
        `PostgreSQL on ${to.shard.name} tries to copy and fails again and again: the logs of both servers say why. Often max_replication_slots or max_wal_senders of ${from.shard.name} are used up, or a program such as Patroni drops the slots (set its ignore_slots).`,
      )
    await sleep(LOOK_MS)
  }
}

/** `working`: a process copies, or waits for something, as for a transaction of the other server. One that fails ends at once. */
async function progressOf(to: Connection, name: string): Promise<{ left: string; working: boolean; failures: number }> {
  const [row] = await to.query(
    `select count(*) filter (where r.srsubstate not in ('r', 's')) as left,
       exists (select from pg_stat_subscription w join pg_stat_activity a using (pid) left join pg_stat_progress_copy c using (pid)
         where w.subid = s.oid and w.relid is not null
           and (c.pid is not null or a.backend_start < clock_timestamp() - interval '3 seconds')) as working,
       (select sync_error_count + apply_error_count from pg_stat_subscription_stats where subid = s.oid) as failures
     from pg_subscription s join pg_subscription_rel r on r.srsubid = s.oid where s.subname = $1 group by s.oid`,
    [name],
  )
  return { left: row?.left ?? '', working: row?.working === 't', failures: Number(row?.failures ?? 0) }
}

/** Waits until all that is committed on the old shard by now is on the new one. */
export async function finishCopy(from: Connection, to: Connection, organization: string): Promise<void> {
  const [row] = await from.query('select pg_current_wal_insert_lsn() as at')
  await flushLog(from.shard)
  await untilReplicated(from, to, nameOf(organization), `'${row!.at}'::pg_lsn`)
}

/**
 * Flushes the log by a commit. PostgreSQL replicates only what is flushed, and on a quiet server nothing else
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

async function untilReplicated(from: Connection, to: Connection, name: string, position: string): Promise<void> {
  const giveUpAt = performance.now() + LONGEST_WAIT_MS
  for (;;) {
    const [slot] = await from.query(
      `select confirmed_flush_lsn >= ${position} as done from pg_replication_slots where slot_name = $1`,
      [name],
    )
    if (!slot) throw new Refusal('The replication slot of the move was dropped: move the organization again.')
    if (slot.done === 't') return
    // Requests are refused during this: a server that is gone is not waited for.
    await to.query('select 1')
    if (performance.now() > giveUpAt) throw new Refusal('The new shard does not keep up: move at a quieter time.')
    await sleep(LOOK_MS / 4)
  }
}

/**
 * Removes the subscription, the slot and the publication. Each may be there without the others: a server that was killed, or
 * restored from a backup, has lost one end.
 */
export async function endCopy(from: Connection, to: Connection, organization: string): Promise<void> {
  const name = nameOf(organization)
  const [there] = await to.query(
    `select 1 from pg_subscription
     where subname = $1 and subdbid = (select oid from pg_database where datname = current_database())`,
    [name],
  )
  if (there) {
    // Otherwise it could not be dropped where its slot is gone.
    await to.query(`alter subscription ${name} disable`)
    await to.query(`alter subscription ${name} set (slot_name = none)`)
    await to.query(`drop subscription ${name}`)
  }
  await dropSource(from, organization)
}

/** Removes the end of a copy on the old shard. */
export async function dropSource(from: Connection, organization: string): Promise<void> {
  const name = nameOf(organization)
  await dropSlot(from, name)
  await from.query(`drop publication if exists ${name}`)
}

const SLOT_MS = 10_000

/** Waits until the other server no longer uses the slot. */
async function dropSlot({ query, shard }: Connection, name: string): Promise<void> {
  const giveUpAt = performance.now() + SLOT_MS
  for (;;) {
    const [slot] = await query('select active from pg_replication_slots where slot_name = $1', [name])
    if (!slot) return
    if (slot.active !== 't') return void (await query('select pg_drop_replication_slot($1)', [name]))
    if (performance.now() > giveUpAt)
      throw new Refusal(`Another server uses the replication slot ${name} of ${shard.name}: drop its subscription.`)
    await sleep(LOOK_MS / 4)
  }
}
