// What the resources of the data API need of the program.
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
  /** Where lists and objects are read. */
  reads: Reads
  syncReaders: SyncReaders
  keys: KeyCache
  limits: Limits
  audit: Audit
  secretHeaderCase: 'exact' | 'any'
  erasureLedger: string
  trustedProxies: TrustedProxies
}
