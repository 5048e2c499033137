// Bounds how many connections a kind of long work holds, and shares them among tenants.
import { createFairQueue, type FairQueue, type Patience } from './fair-queue.ts'
import type { Db } from './pg/db.ts'

// The weight of one piece of work, and the share of a tenant: two at once, and one when other tenants wait too.
const WEIGHT = 3
const SHARE = 8

/**
 * Returns a function that runs work of a tenant when there is room: at most `most` at once on each database, and at most a third of
 * its connections, but at least one.
 */
export function createTurns(most: number) {
  const queues = new WeakMap<Db, FairQueue>()
  return <T>(db: Db, tenant: string, work: () => Promise<T>, patience?: Patience): Promise<T> => {
    const atOnce = Math.max(1, Math.min(most, Math.floor(db.activity().most / 3)))
    const known = queues.get(db) ?? createFairQueue(WEIGHT * atOnce, SHARE)
    queues.set(db, known)
    return known.run(tenant, WEIGHT, work, patience)
  }
}
