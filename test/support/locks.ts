// Waits until a statement waits for a lock, for tests that hold one.
import type { Query } from '../../src/lib/pg/types.ts'
import { until } from './cluster.ts'

/** Waits until a statement of this database, with `part` in its text, has waited for a lock for so many seconds. */
export async function untilLocked(query: Query, part = '', seconds = 0): Promise<void> {
  await until(`a statement with "${part}" to wait for a lock`, async () => {
    const waiting = await query(
      `select 1 from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock' and strpos(query, $1) > 0
         and clock_timestamp() - query_start >= make_interval(secs => $2)`,
      [part, seconds],
    )
    return waiting.length > 0
  })
}
