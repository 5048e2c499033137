// The time zone and the currency of a project, in which its figures, pages and exports are.
import type { Query } from '../../lib/pg/types.ts'

export interface Reporting {
  /** A name of the IANA database, such as `Europe/Madrid`. */
  timeZone: string
  /** Code of ISO 4217. */
  currency: string
}

const DEFAULT_REPORTING: Reporting = { timeZone: 'UTC', currency: 'USD' }

/** The time zone and the reporting currency of a project; the defaults if there is none with this id. */
export async function reportingOf(query: Query, projectId: string): Promise<Reporting> {
  const [row] = await query(FIND, [projectId])
  return row ? { timeZone: row.time_zone!, currency: row.reporting_currency! } : DEFAULT_REPORTING
}

const FIND = { name: 'reporting', text: 'select time_zone, reporting_currency from projects where id = $1' }
