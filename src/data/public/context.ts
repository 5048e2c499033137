// The parts of the program that the resources of the data API use.

import type { Logger } from 'pino'
import type { Audit } from '../../core/audit/audit.ts'
import type { Limits } from '../../core/limits/limits.ts'
import type { Reads } from '../../core/lists/source.ts'
import type { SyncReaders } from '../../core/lists/sync-readers.ts'
import type { KeyCache } from '../../core/tenants/key-cache.ts'
import type { TrustedProxies } from '../../lib/http/client-address.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Feed } from '../ingest/feed.ts'

export interface PublicContext {
  /** The primary. */
  db: Db
  log: Logger
  feed: Feed
  /** The source of lists and objects: the primary or a replica. */
  reads: Reads
  syncReaders: SyncReaders
  keys: KeyCache
  limits: Limits
  audit: Audit
  secretHeaderCase: 'exact' | 'any'
  erasureLedger: string
  trustedProxies: TrustedProxies
}
