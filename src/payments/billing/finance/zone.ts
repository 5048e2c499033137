// The time zone of the days and months of a finance report: that of closed months, else that of all projects, else UTC.
import type { Query } from '../../../lib/pg/types.ts'

/** SQL: the time zone of the organization $1, found once for a whole statement. */
export const FINANCE_ZONE = '(select finance_zone($1))'

/** SQL: the first instant of a day, found once for a whole statement. */
export const dayBegins = (day: string) => `(select day_begins(${day}::date, finance_zone($1)))`

/** The time zone of the finance report of an organization. */
export async function financeZone(query: Query, organizationId: string): Promise<string> {
  const [row] = await query('select finance_zone($1) as zone', [organizationId])
  return row!.zone!
}
