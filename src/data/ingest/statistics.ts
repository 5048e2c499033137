// Gathers statistics of tables after an import has added many rows. Without them PostgreSQL would plan for few rows until
// autovacuum runs.
import type { Logger } from 'pino'
import type { Kind } from '../../core/records/record.ts'
import type { Query, Statement } from '../../lib/pg/types.ts'

// From this many new rows on another plan may be best.
const MANY_ROWS = 10_000
// Statistics name at most a hundred values of a column.
const NAMED_TENANTS = 100

/** The tables that grow with records of a kind: a payment creates its customer. */
export const tablesOf = ({ name, table }: Kind) => (name === 'payment' ? [table, 'customers'] : [table])

/**
 * Gathers statistics if `rows`, the number of new rows, is large, if many small imports have made the table grow since the last
 * time, or if they know no rows of this tenant, the ids of a project and its organization. A failure is only logged: the rows are
 * stored, and autovacuum will gather them later.
 */
export async function gatherStatistics(
  query: Query,
  log: Logger,
  table: string,
  rows: number,
  tenant: readonly string[] = [],
): Promise<void> {
  try {
    if (rows >= MANY_ROWS || (await hasGrown(query, table, tenant))) await query(`analyze (skip_locked) ${table}`)
  } catch (error) {
    log.warn({ err: error, table }, 'Statistics could not be gathered after an import.')
  }
}

/**
 * Gathers statistics of a table to which this transaction has added `rows`, if they are many or more than it had before: its next statements
 * join them, and would read all of them again for each of their rows if the planner knew of none.
 */
export async function gatherInTransaction(query: Query, table: string, rows: number): Promise<void> {
  const [row] = await query('select reltuples < $2 as is_new from pg_class where oid = $1::regclass', [table, rows])
  if (rows >= MANY_ROWS || row!.is_new === 't') await query(`analyze (skip_locked) ${table}`)
}

async function hasGrown(query: Query, table: string, tenant: readonly string[]): Promise<boolean> {
  // PostgreSQL may not show yet what this session has added.
  await query('select pg_stat_force_next_flush()')
  const [row] = await query<{ has_grown: string }>(HAS_GROWN, [table, tenant as string[]])
  return row?.has_grown === 't'
}

/** Gathers statistics of the tables that small imports make grow. */
export function openStatistics(log: Logger) {
  /** When rows were last added to a table that was not looked at since. */
  const grown = new Map<string, number>()
  return {
    async added(query: Query, brought: readonly { kind: Kind }[]): Promise<void> {
      const nowMs = performance.now()
      const [due] = [...grown].filter(([, sinceMs]) => nowMs - sinceMs > SHOWN_MS)
      for (const { kind } of brought) if (!grown.has(kind.table)) grown.set(kind.table, nowMs)
      if (!due) return
      grown.delete(due[0])
      await gatherStatistics(query, log, due[0], 0)
    },
  }
}

// PostgreSQL shows the changes of a table within a second.
const SHOWN_MS = 1500

// A tenant whose rows came after the others would be planned for as one of a single row, until a fifth of the table is its. One
// with less than a thousandth of the rows may be missing in the next sample too, so that a large table must change more. With
// hundreds of tenants the statistics do not name each, and plans are made for a mean one.
const HAS_GROWN: Statement = {
  name: 'has a table grown',
  text: `
  select n_mod_since_analyze > greatest(${MANY_ROWS / 10}, n_live_tup / 5)
    or (last_analyze is null and last_autoanalyze is null and n_mod_since_analyze > 100)
    or (n_mod_since_analyze > greatest(${MANY_ROWS / 10}, n_live_tup / 1000) and cardinality($2::text[]) > 0 and exists (
      select from pg_stats s
      where s.schemaname = t.schemaname and s.tablename = t.relname and s.attname in ('project_id', 'organization_id')
        and cardinality(s.most_common_vals::text::text[]) < ${NAMED_TENANTS}
        and not s.most_common_vals::text::text[] && $2::text[])) as has_grown
  from pg_stat_user_tables t where relid = $1::regclass`,
}
