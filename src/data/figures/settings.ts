// What the stored figures of a project are in: the time zone and the currency that the project had when they were computed.
import { TenantGone } from '../../core/tenants/leaving.ts'
import { type Reporting, sameCurrency } from '../../core/tenants/reporting.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Query } from '../../lib/pg/types.ts'
import { families } from './families.ts'

export interface Settings extends Reporting {
  /** Grows with each change. */
  version: number
}

/** The settings of the stored figures; those of the project if there are none yet. */
export async function settingsOf(query: Query, projectId: string): Promise<Settings> {
  const [row] = await query(FIND, [projectId])
  if (!row) throw new TenantGone(projectId)
  return { timeZone: row.time_zone!, currency: row.currency!, version: Number(row.version) }
}

const FIND = {
  name: 'settings of figures',
  text: `select coalesce(s.time_zone, p.time_zone) as time_zone, coalesce(s.currency, p.reporting_currency) as currency,
      coalesce(s.version, 0) as version
    from projects p left join figure_settings s on s.project_id = p.id where p.id = $1`,
}

/**
 * SQL: whether figures of the project `p` with the settings `s` are not, or not all, in the time zone and the currency of the project.
 */
export const IS_CHANGING = `(s.project_id is not null
  and (not s.is_whole or s.time_zone <> p.time_zone or s.currency <> p.reporting_currency))`

/**
 * Takes over the settings of the project. If they are others, removes all stored figures, so that days of two time zones are not added,
 * nor amounts of two currencies. Call it in a transaction that holds the project's lock on figures, and mark all days.
 */
export async function takeSettings(query: Query, projectId: string): Promise<void> {
  const [changed] = await query(TAKE, [projectId])
  if (changed?.replaces !== 't') return
  for (const { table } of families) await query(`delete from ${table} where project_id = $1`, [projectId])
}

const TAKE = `
  insert into figure_settings as s (project_id, time_zone, currency)
  select id, time_zone, reporting_currency from projects where id = $1
  on conflict (project_id) do update
    set time_zone = excluded.time_zone, currency = excluded.currency, version = s.version + 1, is_whole = false
    where (s.time_zone, s.currency) <> (excluded.time_zone, excluded.currency)
  returning version > 0 as replaces`

/** Records that all days have been computed since the settings of this version. */
export async function completeSettings(query: Query, projectId: string, version: number): Promise<void> {
  await query('update figure_settings set is_whole = true where project_id = $1 and version = $2 and not is_whole', [
    projectId,
    version,
  ])
}

/** The currency of the stored figures of each project. */
export async function currenciesOf(db: Db, projects: readonly string[]): Promise<Map<string, string>> {
  const rows = await db.query(CURRENCIES, [projects as string[]])
  return new Map(rows.map(({ id, currency }) => [id!, currency!]))
}

const CURRENCIES = {
  name: 'currencies of figures',
  text: `select p.id, coalesce(s.currency, p.reporting_currency) as currency
    from projects p left join figure_settings s on s.project_id = p.id where p.id = any($1)`,
}

export interface ReportingNow {
  /** That of all projects, otherwise UTC. */
  timeZone: string
  /** That of the stored figures of all projects; the US dollar if they have several, whose amounts are not added. */
  currency: string
  /** Whether figures are being computed again because one of the two was changed. */
  isChanging: boolean
}

/** What the figures of these projects are in, and the present day in their time zone and instant by the database's clock. */
export async function reportingNow(
  db: Db,
  projects: readonly string[],
): Promise<ReportingNow & { today: string; nowMs: number }> {
  const [row] = await db.query(NOW, [projects as string[]])
  const { time_zone, currency, changing, today, now_ms } = row!
  const reporting = { timeZone: time_zone!, currency: currency!, isChanging: changing === 't' }
  return { ...reporting, today: today!, nowMs: Number(now_ms) }
}

const NOW = {
  name: 'reporting now',
  text: `
  select all_.*, to_char(at at time zone time_zone, 'YYYY-MM-DD') as today, extract(epoch from at) * 1000 as now_ms from (
    select coalesce(case when count(distinct p.time_zone) = 1 then min(p.time_zone) end, 'UTC') as time_zone,
      coalesce(case when count(distinct c.currency) = 1 then min(c.currency) end, 'USD') as currency,
      coalesce(bool_or(${IS_CHANGING}), false) as changing
    from projects p left join figure_settings s on s.project_id = p.id
    cross join lateral (select coalesce(s.currency, p.reporting_currency) as currency) c
    where p.id = any($1)) all_, (select db_clock() as at) now`,
}

/** The one currency of the stored figures of these projects. Throws a 400 if they have several: amounts of two are not added. */
export async function currencyOf(db: Db, projects: readonly string[]): Promise<string> {
  return sameCurrency([...(await currenciesOf(db, projects)).values()])
}
