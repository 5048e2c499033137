// The state of a project at a check of its alerts: its day and hour, and whether the figures of yesterday are complete.
import type { App } from '../../app.ts'
import { readHorizon } from '../../core/lists/horizon.ts'
import { figuresAsOf } from '../../data/figures/as-of.ts'
import { failedDays } from '../../data/figures/failures.ts'
import { addDays } from '../../lib/days.ts'
import type { Db } from '../../lib/pg/db.ts'

// Records of the last minutes of a day may arrive a little later.
const LATE_RECORDS = '1 hour'

/** What the background work needs of the app. */
export type Shared = Pick<App, 'db' | 'clock' | 'log' | 'seal' | 'config'>

/** The project at the time of the check. Days and hours are in its time zone. */
export interface State {
  projectId: string
  /** Its name, or its id. */
  name: string
  /** The reporting currency, in which money of figures is. */
  currency: string
  today: string
  yesterday: string
  hour: number
  /** The instant before which everything is counted; undefined: nothing was counted yet. */
  asOf: string | undefined
  /** Whether the figures of yesterday are complete. */
  isComplete: boolean
  /** The SQLSTATE of the error if they cannot be computed. */
  failure: string | undefined
  /** Whether the figures of today are those of the last minutes. */
  isCurrent: boolean
  digestHour: number | null
}

export async function readState(db: Db, projectId: string): Promise<State | undefined> {
  await readHorizon(db, projectId)
  const asOf = (await figuresAsOf(db, [projectId])) ?? undefined
  const [row] = await db.query(STATE, [projectId, asOf ?? null, LATE_RECORDS])
  if (!row) return undefined
  const today = row.today!
  const yesterday = addDays(today, -1)
  const failure = (await failedDays(db, [projectId])).find(({ day }) => day === yesterday)?.code
  return {
    projectId,
    name: row.name || projectId,
    currency: row.reporting_currency!,
    today,
    yesterday,
    hour: Number(row.hour),
    asOf,
    isComplete: failure === undefined && row.is_counted === 't',
    failure,
    isCurrent: row.is_current === 't',
    digestHour: row.digest_hour === null ? null : Number(row.digest_hour),
  }
}

/** SQL: the time zone of a project, whose row is `p`. */
export const ZONE = 'p.time_zone'

/**
 * SQL: whether a day is still to do, by the column with the last one that was done. That one may be a day later, because the clock
 * was set back. One that is later still was done by a clock that was far ahead, and must not end the days before it.
 */
export const isToDo = (last: string, day: string) => `(${last} is null or ${last} not between ${day} and ${day} + 1)`

const STATE = `
  select p.name, p.reporting_currency, s.digest_hour, to_char(now.local, 'YYYY-MM-DD') as today, extract(hour from now.local)::int as hour,
    coalesce((least($2::timestamptz, db_clock()) - $3::interval) at time zone ${ZONE} >= date_trunc('day', now.local), false)
      as is_counted,
    coalesce($2::timestamptz > db_clock() - interval '30 minutes', false) as is_current
  from projects p left join alert_settings s on s.project_id = p.id
  cross join lateral (select db_clock() at time zone ${ZONE} as local) now
  where p.id = $1`
