// Bounds how many connections imports hold: each has one from its first line to its last, also while it waits for another import.
import { tryLater } from '../../lib/errors.ts'
import { createFairQueue, type FairQueue, type Patience } from '../../lib/fair-queue.ts'
import type { Db } from '../../lib/pg/db.ts'

// More would not be faster, because the imports of an organization write one after the other.
const AT_ONCE = 4
// The weight of one import, and the share of a tenant: two at once, and one when other tenants wait too.
const WEIGHT = 3
const SHARE = 8

/** How long an import over HTTP waits: Node gives the whole request 30 s by default. */
export const PATIENCE: Patience = {
  ms: 10_000,
  error: () => tryLater('too_many_imports', 'Too many imports are in progress: try again.'),
}

const slots = new WeakMap<Db, FairQueue>()

/** Runs an import of the organization when there is room for it; throws the error of `patience` when that takes too long. */
export function inSlot<T>(db: Db, organizationId: string, work: () => Promise<T>, patience?: Patience): Promise<T> {
  const known = slots.get(db) ?? createFairQueue(WEIGHT * atOnce(db), SHARE)
  slots.set(db, known)
  return known.run(organizationId, WEIGHT, work, patience)
}

/** A third of the connections where there are few. */
const atOnce = (db: Db) => Math.max(1, Math.min(AT_ONCE, Math.floor(db.activity().most / 3)))
