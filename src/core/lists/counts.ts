// Adds up the small count deltas that writers append, so that a total stays a short sum.
import type { Logger } from 'pino'
import type { Clock } from '../../lib/clock.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Statement } from '../../lib/pg/types.ts'
import { repeat } from '../../lib/repeat.ts'

const PAUSE_MS = 1000
const LOCK = 7484

/** Adds up the counts once a second, in one process at a time; returns the function that stops it. */
export function sweepCounts({ db, clock, log }: { db: Db; clock: Clock; log: Logger }): () => Promise<void> {
  return repeat({ clock, log }, { pauseMs: PAUSE_MS, failure: 'Adding up the counts failed.' }, async () => {
    const [fresh] = await db.query(ANY_FRESH)
    if (!fresh) return
    await db.tx(async (query) => {
      const [lock] = await query('select pg_try_advisory_xact_lock($1) as mine', [LOCK])
      if (lock!.mine === 't') await query(ADD_UP)
    })
  })
}

// Queried first, so that an idle process sends one statement instead of a transaction of four. Ordered as the index of
// fresh rows: without that, a plan that expects many of them reads the whole table when there are none.
const ANY_FRESH: Statement = {
  name: 'any fresh counts',
  text: 'select from counts where fresh order by project_id, list, field, value limit 1',
}

// A row that is appended at the same time is not visible to this statement. It is not deleted, and the next run adds it.
const ADD_UP = `
  with grown as materialized (
    select distinct project_id, list, field, value from counts where fresh
  ), gone as (
    delete from counts c using grown g
    where (c.project_id, c.list, c.field, c.value) = (g.project_id, g.list, g.field, g.value)
    returning c.project_id, c.list, c.field, c.value, c.n
  )
  insert into counts (project_id, list, field, value, n, fresh)
  select project_id, list, field, value, sum(n), false from gone group by 1, 2, 3, 4 having sum(n) <> 0`
