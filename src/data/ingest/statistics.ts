// Gathers statistics of tables after an import has added many rows. Without them PostgreSQL would plan for few rows until
// autovacuum runs.
import type { Logger } from 'pino'
import type { Query } from '../../lib/pg/types.ts'

// From this many new rows on another plan may be best.
const MANY_ROWS = 10_000

/**
 * Gathers statistics if `rows`, the number of new rows, is large, or if many small imports have made the table grow since the
 * last time. A failure is only logged: the rows are stored, and autovacuum will gather them later.
 */
export async function gatherStatistics(query: Query, log: Logger, table: string, rows: number): Promise<void> {
  try {
    if (rows >= MANY_ROWS || (await hasGrown(query, table))) await query(`analyze (skip_locked) ${table}`)
  } catch (error) {
    log.warn({ err: error, table }, 'Statistics could not be gathered after an import.')
  }
}

async function hasGrown(query: Query, table: string): Promise<boolean> {
  const [row] = await query<{ has_grown: string }>(HAS_GROWN, [table])
  return row?.has_grown === 't'
}

const HAS_GROWN = `
  select n_mod_since_analyze > greatest(${MANY_ROWS / 10}, n_live_tup / 5) as has_grown
  from pg_stat_user_tables where relid = $1::regclass`
