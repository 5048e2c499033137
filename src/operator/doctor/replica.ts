// The doctor's checks of the replica: it is a standby, of this primary, and follows.
import { type Db, openDb } from '../../lib/pg/db.ts'
import { causeOf } from '../../lib/pg/errors.ts'
import { pendingMigrations } from '../../lib/pg/migrate.ts'
import { isPgpoolAt, isShared, throughPgpool } from '../../lib/pg/pooler.ts'
import { type Finding, ok, warning } from './finding.ts'
import { sharedConnections } from './pooler.ts'

const TIMEOUT_MS = 2_000
const POLL_MS = 20
const UNTIL_THEN = 'Until then, reads go to the primary.'

/** A problem of the replica is only a warning, because reads then go to the primary. */
export async function checkReplica(primary: Db, url: string | undefined): Promise<Finding[]> {
  if (!url) return []
  const replica = openDb({ url, applicationName: 'tundish doctor', connections: 2, readConnections: 1 })
  try {
    return [(await pooled(replica, url)) ?? (await follow(primary, replica))]
  } catch (error) {
    const fix = `Check the address, name, user, password and rights in READ_DATABASE_URL. ${UNTIL_THEN}`
    return [warning('replica', `The replica cannot be used (${causeOf(error)}).`, fix)]
  } finally {
    await replica.close()
  }
}

async function pooled(replica: Db, url: string): Promise<Finding | undefined> {
  const [pgpool] = throughPgpool('READ_DATABASE_URL')
  const fix = `Set it to the address of the replica itself. ${UNTIL_THEN}`
  if (await isPgpoolAt(url)) return warning('replica', pgpool, fix)
  if (await isShared(replica.connect)) return warning('replica', sharedConnections('READ_DATABASE_URL'), fix)
  return undefined
}

async function follow(primary: Db, replica: Db): Promise<Finding> {
  const [server] = await replica.query('select pg_is_in_recovery() as standby')
  if (server!.standby !== 't') {
    const message = 'The server of READ_DATABASE_URL is not a standby.'
    return warning('replica', message, `Point it at a replica. ${UNTIL_THEN}`)
  }
  const [target] = await primary.query('select pg_current_wal_flush_lsn() as position')
  const begunMs = performance.now()
  let shown: string | null = 'f'
  while (shown !== 't' && performance.now() - begunMs < TIMEOUT_MS) {
    const [row] = await replica.query('select pg_last_wal_replay_lsn() >= $1 as shown', [target!.position!])
    shown = row!.shown!
    if (shown !== 't') await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  if (shown !== 't') {
    const message = `The replica did not catch up with the primary within ${TIMEOUT_MS / 1000} s.`
    const fix = `Check pg_stat_replication on the primary, and look for long queries or a paused replay. ${UNTIL_THEN}`
    return warning('replica', message, fix)
  }
  const pending = await pendingMigrations((text) => replica.query(text))
  if (pending.length > 0) {
    const message = 'The server of READ_DATABASE_URL has no tables of this version: it replicates another database.'
    return warning('replica', message, `Point it at a replica of DATABASE_URL. ${UNTIL_THEN}`)
  }
  return ok('replica', `The replica follows, ${Math.round(performance.now() - begunMs)} ms behind at most.`)
}
