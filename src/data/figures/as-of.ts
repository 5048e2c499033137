// Up to which instant the figures of projects are complete.
import type { Db } from '../../lib/pg/db.ts'
import type { Statement } from '../../lib/pg/types.ts'
import { instantFromPg } from '../../lib/time.ts'
import { HAS_NEWS } from './reports.ts'
import { IS_CHANGING } from './settings.ts'

/**
 * The instant up to which the figures of these projects are complete; null if a project with records has no figures yet, or if they are
 * computed again in another time zone or currency.
 */
export async function figuresAsOf(db: Db, projects: readonly string[]): Promise<string | null> {
  const [row] = await db.query(AS_OF, [projects as string[]])
  return row!.as_of!
}

/** Figures that lag behind: up to when they are complete; null if they never were. */
export interface Lagging {
  asOf: string | null
}

/** How far the figures of these projects lag behind; undefined if it is less than some minutes, as it is when records change all the time. */
export async function laggingFigures(db: Db, projects: readonly string[]): Promise<Lagging | undefined> {
  const [row] = await db.query(AS_OF, [projects as string[]])
  return row!.lags === 't' ? { asOf: row!.as_of ? instantFromPg(row!.as_of) : null } : undefined
}

// Without marks, figures are complete up to the project's horizon, but not beyond the last charges whose days were marked.
const AS_OF: Statement = {
  name: 'how complete figures are',
  text: `
  select case when bool_and(as_of is not null or not waits) then min(as_of) end as as_of,
    bool_or(waits and coalesce(as_of < db_clock() - interval '5 minutes', true)) as lags from (
    select m.marked or ${HAS_NEWS} or ${IS_CHANGING} as waits, case when ${IS_CHANGING} then null when ${HAS_NEWS} then least(m.as_of, greatest(f.followed_at, g.horizon))
      else m.as_of end as as_of
    from unnest($1::text[]) asked (id)
    join projects p on p.id = asked.id
    join organization_clocks c on c.organization_id = p.organization_id
    left join figure_reports f on f.organization_id = p.organization_id
    left join project_clocks k on k.project_id = p.id
    left join figure_progress g on g.project_id = p.id
    left join figure_settings s on s.project_id = p.id
    cross join lateral (select exists (select from figure_marks m where m.project_id = p.id) as marked) known
    cross join lateral (
      select marked, case when marked or g.horizon is null then g.horizon else greatest(k.horizon, g.horizon) end as as_of) m) each`,
}
