// Days whose figures could not be computed. They stop neither other days nor other projects, and are tried again.
import type { Db } from '../../lib/pg/db.ts'
import { isClash, isTimeout, isUnavailable, sqlState } from '../../lib/pg/errors.ts'
import type { Query } from '../../lib/pg/types.ts'
import type { Days } from './compute.ts'

/** A day whose figures are those from before its last change, or are missing. */
export interface FailedDay {
  project_id: string
  day: string
  /** The SQLSTATE of the error. */
  code: string
}

/** Receives each day that could not be computed, and the error. */
export type OnFailedDay = (day: FailedDay & { family: string }, error: unknown) => void

// A day that takes too long takes ten minutes each time.
const RETRY_AFTER = `interval '1 hour'`

/** Whether the error is about the data of the days, so that other days can be computed. */
export function isAboutDays(error: unknown): boolean {
  if (sqlState(error) === undefined || isClash(error)) return false
  return isTimeout(error) || !isUnavailable(error)
}

/** Replaces the marks of a day by a failure. */
export async function addFailure(db: Db, projectId: string, family: string, day: string, code: string): Promise<void> {
  await db.tx(async (query) => {
    await query('delete from figure_marks where project_id = $1 and family = $2 and day = $3::date', [
      projectId,
      family,
      day,
    ])
    await query(
      `insert into figure_failures as f (project_id, family, day, code, failed_at, next_attempt_at)
       values ($1, $2, $3::date, $4, db_clock(), db_clock() + ${RETRY_AFTER})
       on conflict (project_id, family, day) do update set code = excluded.code, failed_at = excluded.failed_at,
         next_attempt_at = excluded.next_attempt_at`,
      [projectId, family, day, code],
    )
  })
}

/** Removes the failures of days that have been computed. */
export async function removeFailures(
  query: Query,
  projectId: string,
  family: string,
  { from, to }: Days,
): Promise<void> {
  await query(
    'delete from figure_failures where project_id = $1 and family = $2 and day >= $3::date and day < $4::date',
    [projectId, family, from, to],
  )
}

/** Marks the days that are due to be tried again, also those that were postponed by a clock that has been set back since. */
export async function markDueFailures(query: Query): Promise<void> {
  await query(`
    with due as (
      update figure_failures set next_attempt_at = db_clock() + ${RETRY_AFTER} where next_attempt_at <= db_clock()
        or next_attempt_at > db_clock() + 2 * ${RETRY_AFTER}
      returning project_id, family, day)
    insert into figure_marks (project_id, family, day) select project_id, family, day from due`)
}

const MAX_SHOWN = 100

/** The first hundred days of these projects that could not be computed, newest first. */
export async function failedDays(db: Db, projects: readonly string[]): Promise<FailedDay[]> {
  const rows = await db.query<Record<keyof FailedDay, string>>(
    `select project_id, day::text, min(code) as code from figure_failures where project_id = any($1)
     group by project_id, day order by day desc, project_id limit ${MAX_SHOWN}`,
    [projects as string[]],
  )
  return rows
}
