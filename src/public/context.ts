// The parts of the program that the resources of the data API use.
import type { Audit } from '../audit/audit.ts'
import type { TrustedProxies } from '../lib/http/client-address.ts'
import type { Db } from '../lib/pg/db.ts'
import type { Limits } from '../limits/limits.ts'
import type { Reads } from '../lists/source.ts'
import type { SyncReaders } from '../lists/sync-readers.ts'
import type { KeyCache } from '../tenants/key-cache.ts'

export interface PublicContext {
  /** The primary. */
  db: Db
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
