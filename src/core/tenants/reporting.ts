// The time zone and the currency of a project, in which its figures, pages and exports are.
import { ApiError } from '../../lib/errors.ts'
import type { Query } from '../../lib/pg/types.ts'

export interface Reporting {
  /** A name of the IANA database, such as `Europe/Madrid`. */
  timeZone: string
  /** Code of ISO 4217. */
  currency: string
}

const DEFAULT_CURRENCY = 'USD'

/** The currency that all of these are. Throws a 400 if there are several. */
export function sameCurrency(currencies: readonly string[]): string {
  const [first = DEFAULT_CURRENCY, ...others] = [...new Set(currencies)].sort()
  if (others.length === 0) return first
  throw new ApiError(
    400,
    'different_currencies',
    `The projects have different reporting currencies (${[first, ...others].join(', ')}), whose amounts cannot be added: ask for one project, for by=project, or for money=own.`,
  )
}

/** SQL: the time zone of a project, found once for a whole statement. */
export const zoneOf = (project: string) => `(select time_zone from projects where id = ${project})`

/** SQL: the day of an instant in a time zone. */
export const dayIn = (instant: string, zone: string) => `(${instant} at time zone ${zone})::date`

/** SQL: the first instant of the month after that of an instant. */
export const nextMonthIn = (instant: string, zone: string) =>
  `(date_trunc('month', ${instant} at time zone ${zone}) + interval '1 month') at time zone ${zone}`

/** The present day in a time zone, such as `2026-01-31`. */
export async function todayIn(query: Query, timeZone: string): Promise<string> {
  const [now] = await query(`select to_char(db_clock() at time zone $1::text, 'YYYY-MM-DD') as today`, [timeZone])
  return now!.today!
}
