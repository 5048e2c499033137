// The time zone and the reporting currency of a project.
import { currencies } from '../../lib/currencies.ts'
import { invalidValue, Refusal } from '../../lib/errors.ts'
import { isLockTimeout } from '../../lib/pg/errors.ts'
import type { Query } from '../../lib/pg/types.ts'
import { Type } from '../../lib/shape/schema.ts'
import { shorten } from '../../lib/text.ts'
import { change } from './operation.ts'

const LOCK_SECONDS = 3

const setting = change({
  id: 'setProjectReporting',
  command: 'project set',
  right: 'manage',
  method: 'PUT',
  path: '/projects/:project_id/reporting',
  tag: 'Tenants',
  summary: 'Set the time zone and the reporting currency of a project',
  description:
    'Days, weeks, months and hours of figures, pages and exports are those of the time zone; amounts are converted to the currency. After a change all figures of the project are removed and computed again. What is left out stays as it is.',
  body: Type.Named('ReportingSetting', {
    time_zone: Type.Optional(
      Type.String({
        description:
          'A name of the IANA time zone database. An older name of a zone, such as Asia/Calcutta, becomes the present one.',
        examples: ['Europe/Madrid'],
        maxLength: 100,
      }),
    ),
    currency: Type.Optional(
      Type.String({ description: 'Code of a currency of ISO 4217.', examples: ['EUR'], maxLength: 3 }),
    ),
  }),
  response: Type.Named('Reporting', {
    time_zone: Type.String({ description: 'The time zone from now on.' }),
    currency: Type.String({ description: 'The reporting currency from now on.' }),
  }),
  checkInput({ body }) {
    const { time_zone, currency } = body
    if (time_zone !== undefined && !isTimeZone(time_zone)) throw badZone(time_zone)
    if (currency !== undefined && !currencies.has(currency))
      throw invalidValue(
        `currency must be a currency of ISO 4217 that is in use, such as EUR, got "${shorten(currency, 20)}".`,
      )
  },
  async change(query, { params, body }) {
    const id = params.project_id
    const { time_zone, currency = null } = body
    const zone = time_zone === undefined ? null : await knownZone(query, time_zone)
    await lockOutWriters(query, id)
    const [old] = await query(`select ${COLUMNS} from projects where id = $1 for no key update`, [id])
    const [after] = await query(SET, [id, zone, currency])
    await query(MARK, [id])
    const result = { time_zone: after!.time_zone!, currency: after!.currency! }
    return { entry: { action: 'reporting.set', target: `project ${id}`, before: old!, after: result }, result }
  },
})

export const reporting = [setting] as const

const COLUMNS = 'time_zone, reporting_currency as currency'
const SET = `
  update projects set time_zone = coalesce($2, time_zone), reporting_currency = coalesce($3, reporting_currency)
  where id = $1 returning ${COLUMNS}`

// Only if the figures are in others.
const MARK = `
  insert into figure_marks (project_id, family, day)
  select p.id, 'all', current_date from projects p join figure_settings s on s.project_id = p.id
  where p.id = $1 and (s.time_zone, s.currency) <> (p.time_zone, p.reporting_currency)`

/** Without offsets and abbreviations, which have no changes of clocks or are ambiguous. */
function isTimeZone(name: string): boolean {
  if (!/^(UTC|[A-Za-z_]+(\/[A-Za-z0-9_+-]+)+)$/i.test(name)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

const badZone = (name: string) =>
  invalidValue(
    `time_zone must be a name of the IANA time zone database, such as Europe/Madrid, got "${shorten(name, 60)}".`,
  )

/** The name as PostgreSQL writes it; of two names of one zone the present one, because zones are compared by their names. */
async function knownZone(query: Query, name: string): Promise<string> {
  const [zone] = await query(KNOWN_ZONE, [name])
  if (!zone) throw badZone(name)
  return zone.name!
}

// The zones of a database may be older than the present name.
const KNOWN_ZONE = `
  select name from pg_timezone_names where lower(name) in (lower(present_time_zone($1)), lower($1))
  order by lower(name) = lower($1) limit 1`

/**
 * Waits for transactions that write records of the project: they mark the days whose figures they change in the time zone that they
 * have read.
 */
async function lockOutWriters(query: Query, projectId: string): Promise<void> {
  await query(`set local lock_timeout = '${LOCK_SECONDS}s'`)
  try {
    await query('select pg_advisory_xact_lock(write_lock_class(), number) from projects where id = $1', [projectId])
  } catch (error) {
    if (!isLockTimeout(error)) throw error
    throw new Refusal(
      `An import is writing records of project ${projectId}. Nothing was changed: try again when it has ended.`,
    )
  }
}
