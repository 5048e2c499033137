// When an import gathers statistics of a table: without them plans are made for a few rows, until autovacuum comes by.
import type { Query } from '../lib/pg/types.ts'

/** From this many new rows on another plan may be best. */
export const MANY_ROWS = 10_000

/** Whether many small imports, as from a Stripe account, have grown a table since its statistics were last gathered. */
export async function hasGrown(query: Query, table: string): Promise<boolean> {
  const [row] = await query<{ has_grown: string }>(HAS_GROWN, [table])
  return row?.has_grown === 't'
}

const HAS_GROWN = `
  select n_mod_since_analyze > greatest(${MANY_ROWS / 10}, n_live_tup / 5) as has_grown
  from pg_stat_user_tables where relid = $1::regclass`
