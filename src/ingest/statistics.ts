// Gathers statistics of tables that an import has grown: without them plans are made for a few rows, until autovacuum comes by.
import type { Logger } from 'pino'
import type { Query } from '../lib/pg/types.ts'

// From this many new rows on another plan may be best.
const MANY_ROWS = 10_000

/**
 * Gathers them after `rows` new rows, if those are many, or if many small imports, as from a Stripe account, have grown the
 * table since. A failure is logged: the rows are stored, and autovacuum will come by.
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
