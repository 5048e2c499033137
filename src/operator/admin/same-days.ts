// Figures and the finance report are compared by month only if their days are of one time zone.
import { ApiError } from '../../lib/errors.ts'
import type { Db } from '../../lib/pg/db.ts'

/** Throws a 409 if a project has days of another time zone than the report. */
export async function requireSameDays(db: Db, id: string, project?: string): Promise<void> {
  const [other] = await db.query(OTHER_DAYS, [id, project ?? null])
  if (!other) return
  throw new ApiError(
    409,
    'operation_refused',
    `The figures of project ${other.id} are by days of ${other.time_zone}, the finance report by those of ${other.zone}: their months cannot be compared.`,
  )
}

const OTHER_DAYS = `
  select id, time_zone, finance_zone($1) as zone from projects
  where organization_id = $1 and ($2::text is null or id = $2) and time_zone <> finance_zone($1) order by id limit 1`
