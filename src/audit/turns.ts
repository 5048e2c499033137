// Who waits for the end of the audit log waits in turns, and without the connections that others need.

import { tryLater } from '../lib/errors.ts'
import { createFairQueue, type FairQueue } from '../lib/fair-queue.ts'
import type { Db } from '../lib/pg/db.ts'

// Whoever appends to the audit log holds a connection while they wait for its end, which is one for the whole installation,
// and for the disk. More of them would be no quicker: they would keep the charges of all from a connection.
// Other processes count their own, against connections of their own, so that in each of them the rest stays free.
const AT_ONCE = 4
// The weight of one, and how much of it one tenant has at once: two, beside other tenants one.
const WEIGHT = 3
const SHARE = 8

// What waits for longer would be done for callers who are gone, and would hold up whoever stops the process.
const PATIENCE = {
  ms: 10_000,
  error: () => tryLater('audit_log_busy', 'Too many others wait to be written down in the audit log: try again.'),
}

const turns = { refund: new WeakMap<Db, FairQueue>(), erasure: new WeakMap<Db, FairQueue>() }

/**
 * Runs a transaction that ends with an entry of the audit log, when it is the tenant's turn, or answers 503 when that does
 * not come in time. Refunds do not wait behind erasures, which may wait for an import.
 */
export function inAuditTurn<T>(db: Db, kind: keyof typeof turns, tenant: string, work: () => Promise<T>): Promise<T> {
  const known = turns[kind].get(db) ?? createFairQueue(WEIGHT * atOnce(db), SHARE)
  turns[kind].set(db, known)
  return known.run(tenant, WEIGHT, work, PATIENCE)
}

/** A third of the connections where these are few. */
const atOnce = (db: Db) => Math.max(1, Math.min(AT_ONCE, Math.floor(db.activity().most / 3)))
