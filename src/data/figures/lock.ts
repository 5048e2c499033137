// What all transactions on figures have in common: the class of their locks, and their limits.
import { endWhenStalled } from '../../lib/pg/stalled.ts'
import type { Query } from '../../lib/pg/types.ts'

/** The class of the advisory locks. Lower numbers are taken, from the migrations (7482) to the import (7486) and others. */
export const LOCK_CLASS = 7493
// A busy day of a large project takes a second.
const MAX_SECONDS = 600
// The sums of a day by all its splits fit into twice as much. With the default of 4 MB PostgreSQL writes the facts to disk once for
// each split, which takes longer than adding them up.
const WORK_MEMORY = '32MB'

/** Sets the limits of a transaction on figures. */
export async function limitFigures(query: Query): Promise<void> {
  await Promise.all([
    query(`set local statement_timeout = '${MAX_SECONDS}s'`),
    query(`set local work_mem = '${WORK_MEMORY}'`),
    endWhenStalled(query),
  ])
}
