// Bounds how many connections the transactions of refunds and erasures hold while they wait for the audit log.
import { type ApiError, tryLater } from '../../lib/errors.ts'
import type { Db } from '../../lib/pg/db.ts'
import { createTurns } from '../../lib/turns.ts'

// A transaction that waits to append to the audit log holds a connection, and the log takes one entry at a time: more
// concurrent transactions would not be faster, and would leave charges without a connection.
const AT_ONCE = 4
// After this long the caller has probably given up, and the work would only delay the shutdown of the process.
const PATIENCE = { ms: 10_000, error: auditLogBusy }

const turns = { refund: createTurns(AT_ONCE), erasure: createTurns(AT_ONCE) }

/**
 * Runs a transaction that ends with an entry of the audit log when it is the tenant's turn; throws a 503 `ApiError` when
 * that takes too long. Refunds do not wait behind erasures, which may wait for an import.
 */
export function inAuditTurn<T>(db: Db, kind: keyof typeof turns, tenant: string, work: () => Promise<T>): Promise<T> {
  return turns[kind](db, tenant, work, PATIENCE)
}

export function auditLogBusy(): ApiError {
  return tryLater('audit_log_busy', 'Too many changes wait for the audit log: try again.')
}
