// The parts of the program that the resources of the data API use.

import type { Logger } from 'pino'
import type { Audit } from '../../core/audit/audit.ts'
import type { Limits } from '../../core/limits/limits.ts'
import type { Reads } from '../../core/lists/source.ts'
import type { SyncReaders } from '../../core/lists/sync-readers.ts'
import type { Metrics } from '../../core/metrics/metrics.ts'
import type { KeyCache } from '../../core/tenants/key-cache.ts'
import type { KeyUses } from '../../core/tenants/key-uses.ts'
import type { TrustedProxies } from '../../lib/http/client-address.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Feed } from '../ingest/feed.ts'
import type { Writers } from '../ingest/writers.ts'

export interface PublicContext {
  /** The primary. */
  db: Db
  log: Logger
  feed: Feed
  /** The source of lists and objects: the primary or a replica. */
  reads: Reads
  syncReaders: SyncReaders
  keys: KeyCache
  keyUses: KeyUses
  writers: Writers
  /** Counts the records of a call for metrics, by key and outcome. */
  countRecords: Metrics['countRecords']
  limits: Limits
  audit: Audit
  secretHeaderCase: 'exact' | 'any'
  erasureLedger: string
  trustedProxies: TrustedProxies
}
