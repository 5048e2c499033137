// How an entry of the audit log is chained to the one before it: by an HMAC over its fields and the previous hash.
import { createHmac } from 'node:crypto'
import { bytesFromPg } from '../../lib/pg/row-bytes.ts'
import type { NamedRow } from '../../lib/pg/types.ts'
import type { Seal } from '../../lib/secrets.ts'
import { instantFromPg } from '../../lib/time.ts'

export const COLUMN_NAMES = ['sequence', 'at', 'actor_kind', 'actor', 'source', 'action', 'target', 'before', 'after']
export const COLUMNS = COLUMN_NAMES.join(', ')

/** The hash before the first entry, as PostgreSQL writes it. */
export const GENESIS = `\\x${'00'.repeat(32)}`

/** The key of the chain, which is derived from the master key and not stored in the database. */
export const chainKey = (seal: Seal): Buffer => seal.derive('audit log')

/** Hashes an entry. The fields are written as a JSON array, so that text cannot move from one field into the next. */
export function hashOf(key: Buffer, previous: string, row: NamedRow): Buffer {
  const fields = COLUMN_NAMES.map((name) => (name === 'at' ? instantFromPg(row.at!) : row[name]))
  return createHmac('sha256', key).update(bytesFromPg(previous)).update(JSON.stringify(fields)).digest()
}
