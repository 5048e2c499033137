// Chooses where the data API reads: at the replica of READ_DATABASE_URL while it is fresh enough, or at the primary alone.
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Db } from '../../lib/pg/db.ts'
import { migrations } from '../../lib/pg/migrate.ts'
import { openReplica, type Replica, type ReplicaOptions } from './replica/replica.ts'
import { type Reads, readsAtPrimary } from './source.ts'

interface Shared {
  config: Pick<Config, 'readDatabaseUrl' | 'readMaxLagMs' | 'statementTimeoutMs'>
  db: Db
  clock: Clock
  log: Logger
  metrics: { replica(replica: () => Pick<Replica, 'usable' | 'lagMs'>): ReplicaOptions['observe'] }
}

export async function openReads({ config, db, clock, log, metrics }: Shared): Promise<Reads> {
  const { readDatabaseUrl: url, readMaxLagMs: maxLagMs } = config
  if (!url) return readsAtPrimary(db)
  const connect = { url, applicationName: 'tundish reads', statementTimeoutMs: config.statementTimeoutMs }
  const schemaVersion = (await migrations()).at(-1)!.version
  const observe = metrics.replica(() => replica)
  const replica = openReplica({ db, connect, clock, maxLagMs, schemaVersion, log, observe })
  return replica
}
