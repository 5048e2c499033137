// Figures during an upgrade: the newest program computes them, and again what an older one has computed without what it does not know.
import type { Db } from '../../lib/pg/db.ts'
import { migrations } from '../../lib/pg/migrate.ts'
import type { Query } from '../../lib/pg/types.ts'
import type { Days } from './compute.ts'

// Longer than the pause between two looks of a program, so that an older one does not begin in between.
const SEEN_FOR = '3 minutes'
// It looks every two seconds, and an idle server should write little.
const SEEN_AGAIN = '30 seconds'

/** The newest migration that this program knows. */
export const newest = async (): Promise<string> =>
  String(Math.max(...(await migrations()).map(({ version }) => version)))

/** Says that this program computes figures, and returns whether it does: not while one of a newer schema does. */
export async function isNewest({ query }: Db): Promise<boolean> {
  const [row] = await query(SEEN, [await newest(), SEEN_FOR])
  return row!.newer !== 't'
}

const SEEN = `
  with mine as (
    insert into figure_programs (version, seen_at) select $1::int, db_clock()
    where not exists (
      select from figure_programs
      where version = $1::int and seen_at between db_clock() - interval '${SEEN_AGAIN}' and db_clock())
    on conflict (version) do update set seen_at = excluded.seen_at)
  select exists (
    select from figure_programs
    where version > $1::int and seen_at between db_clock() - $2::interval and db_clock() + $2::interval) as newer`

/** SQL: whether the schema is newer than the program whose newest migration is $1. */
export const IS_OLDER = 'exists (select from schema_migrations where version > $1::int)'

/** Notes in a transaction that takes the marks of these days that they have to be computed again if the schema is newer than this program. */
export async function noteIfOlder(query: Query, projectId: string, family: string, days: Days): Promise<void> {
  await query(NOTE, [await newest(), projectId, family, days.from, days.to])
}

const NOTE = `
  insert into figures_by_older (project_id, family, day)
  select $2, $3, day::date from generate_series($4::date, $5::date - 1, interval '1 day') days (day) where ${IS_OLDER}
  on conflict do nothing`
