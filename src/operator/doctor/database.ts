// The doctor's checks of the server: version, rights, encoding, clock, migrations, and the conditions of the sync horizon.
import { UsageError } from '../../lib/errors.ts'
import { BEFORE_READING } from '../../lib/pg/before-reading.ts'
import type { Db } from '../../lib/pg/db.ts'
import { sqlState } from '../../lib/pg/errors.ts'
import { readHosts } from '../../lib/pg/hosts.ts'
import { newerMigrations, pendingMigrations, STANDBY, wrongEncoding } from '../../lib/pg/migrate.ts'
import { noSchema, readOnly } from '../../lib/pg/reachable.ts'
import { count } from '../../lib/text.ts'
import { type Finding, failed, ok, warning } from './finding.ts'

const OLDEST = 15
const NEWEST_TESTED = 18
// Normal between two machines that synchronize their clocks by NTP.
const MAX_SKEW_MS = 2_000
// A writer that takes longer delays every sync of its project.
const LONG_WRITE = '5 minutes'

export async function checkServer(db: Db): Promise<Finding[]> {
  const [row] = await db.query(`
    select current_setting('server_version') as version, current_setting('server_version_num')::int / 10000 as major,
      current_setting('server_encoding') as encoding, pg_is_in_recovery() as standby, quote_ident(current_user) as role,
      quote_ident(current_schema()) as schema, has_schema_privilege(current_schema(), 'CREATE') as may_create,
      quote_ident(current_database()) as database, has_database_privilege(current_database(), 'TEMP') as may_keep,
      current_setting('default_transaction_read_only') as read_only`)
  const { version, encoding, standby, role, schema, may_create, database, may_keep, read_only } = row!
  const major = Number(row!.major)
  const findings: Finding[] = []
  const wrong = (message: string, fix: string) => findings.push(failed('database', message, fix))
  if (major < OLDEST) wrong(`PostgreSQL ${version} is too old.`, `Upgrade it to PostgreSQL ${OLDEST} or newer.`)
  if (encoding !== 'UTF8') wrong(...wrongEncoding(encoding!))
  if (standby === 't') wrong(...STANDBY)
  if (schema === null) wrong(...noSchema(role!))
  else if (may_create !== 't') {
    wrong(`The role ${role} may not create tables.`, `Run, as the owner: grant create on schema ${schema} to ${role};`)
  }
  if (may_keep !== 't') {
    const fix = `Run, as the owner: grant temporary on database ${database} to ${role};`
    wrong(`The role ${role} may not create temporary tables, which imports and restores need.`, fix)
  }
  if (read_only === 'on') wrong(...readOnly(role!))
  if (major > NEWEST_TESTED) {
    const fix = `It should work; tested versions are ${OLDEST} to ${NEWEST_TESTED}.`
    findings.push(warning('database', `PostgreSQL ${version} is newer than the tested versions.`, fix))
  }
  return findings.length > 0 ? findings : [ok('database', `PostgreSQL ${version}, role ${role}.`)]
}

/** Only if the address has several hosts: with one server no failover can lose commits. */
export async function checkReplication(
  db: Db,
  { databaseUrl }: { databaseUrl: string | undefined },
): Promise<Finding[]> {
  if ((readHosts(databaseUrl ?? '')?.hosts.length ?? 1) < 2) return []
  const [row] = await db.query(`
    select current_setting('synchronous_standby_names') as names, current_setting('synchronous_commit') as commit`)
  const { names, commit } = row!
  if (names !== '' && commit !== 'off' && commit !== 'local') {
    return [ok('replication', `Commits wait for a standby (synchronous_standby_names = ${names}).`)]
  }
  const cause = names === '' ? 'synchronous_standby_names is empty' : `synchronous_commit is ${commit}`
  const fix = 'Enable synchronous replication, so that a failover loses no confirmed charge.'
  return [warning('replication', `Commits do not wait for a standby: ${cause}.`, fix)]
}

export async function checkMigrations(db: Db): Promise<Finding> {
  const fix = 'Run: tundish migrate'
  try {
    const pending = await pendingMigrations((text) => db.query(text))
    if (pending.length === 0) return await checkNewer(db)
    return failed('migrations', `${count(pending.length, 'migration')} pending: ${pending.join(', ')}.`, fix)
  } catch (error) {
    if (error instanceof UsageError) return failed('migrations', ...BEFORE_READING)
    // The first migration creates the table.
    if (sqlState(error) === '42P01') return failed('migrations', 'The database has no Tundish tables yet.', fix)
    throw error
  }
}

/** An older program works on a newer schema within a major version. */
async function checkNewer(db: Db): Promise<Finding> {
  const { versions, isBreaking } = await newerMigrations((text) => db.query(text))
  if (versions.length === 0) return ok('migrations', 'The schema is current.')
  const message = `A newer Tundish has migrated the database (${versions.join(', ')})`
  if (!isBreaking) return ok('migrations', `${message}. This version works on it.`)
  const fix = 'Run that version, or restore a backup.'
  return failed('migrations', `${message}, and this version does not start on it.`, fix)
}

/** Compares the database's clock with this machine's, allowing for the round trip. */
export async function checkClock(db: Db): Promise<Finding> {
  const sentMs = Date.now()
  const [row] = await db.query(`select round(extract(epoch from db_clock()) * 1000)::bigint as ms`)
  const receivedMs = Date.now()
  const theirsMs = Number(row!.ms)
  const skewMs = theirsMs < sentMs ? theirsMs - sentMs : Math.max(0, theirsMs - receivedMs)
  if (Math.abs(skewMs) <= MAX_SKEW_MS) return ok('clock', 'The clocks of the database and this machine agree.')
  const seconds = (Math.abs(skewMs) / 1000).toFixed(1)
  const message = `The database's clock is ${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} this machine's.`
  return warning(
    'clock',
    message,
    'Synchronize both machines by NTP. Nothing is lost: all stamps are set by the database.',
  )
}

/** The horizon is the start of the oldest writer, so every writer must be visible, and none may run for too long. */
export async function checkSync(db: Db): Promise<Finding[]> {
  const [row] = await db.query(
    `select pg_has_role(current_user, 'pg_read_all_stats', 'usage') as sees_all, quote_ident(current_user) as role,
       (select count(*) from pg_prepared_xacts where database = current_database()) as prepared,
       count(*) filter (where a.xact_start is null) as unseen,
       count(*) filter (where a.xact_start < clock_timestamp() - $1::interval) as slow
     from pg_locks l left join pg_stat_activity a using (pid)
     where l.locktype = 'advisory' and l.objsubid = 2 and l.granted and l.classid = write_lock_class()
       and l.database = (select oid from pg_database where datname = current_database())`,
    [LONG_WRITE],
  )
  const { role, sees_all } = row!
  const prepared = Number(row!.prepared)
  const unseen = Number(row!.unseen)
  const slow = Number(row!.slow)
  const findings: Finding[] = []
  if (prepared > 0) {
    const fix = 'Find them with "select gid from pg_prepared_xacts", then run commit prepared or rollback prepared.'
    findings.push(warning('sync', `${count(prepared, 'prepared transaction')} may hold X-Sync-Horizon back.`, fix))
  }
  if (unseen > 0) {
    const message = `${count(unseen, 'writer')} not visible to this role, so X-Sync-Horizon does not advance.`
    const fix = `Use one role for all processes, or run: grant pg_read_all_stats to ${role};`
    findings.push(failed('sync', message, fix))
  }
  if (slow > 0) {
    const message = `${count(slow, 'writer')} running for more than ${LONG_WRITE} hold X-Sync-Horizon back.`
    const fix = 'A long import is a normal cause; otherwise look for "idle in transaction" in pg_stat_activity.'
    findings.push(warning('sync', message, fix))
  }
  if (findings.length > 0) return findings
  const visible =
    sees_all === 't'
      ? 'X-Sync-Horizon advances: every writing transaction is visible'
      : `X-Sync-Horizon advances: every writing transaction of the role ${role} is visible. Use this role for all processes`
  return [ok('sync', `${visible}.`)]
}
