// Marks of days whose figures have to be recomputed. Changes of records add them; a pass takes them in runs of days.
import { paidAt } from '../../core/records/payment-time.ts'
import { dayIn, zoneOf } from '../../core/tenants/reporting.ts'
import type { Query } from '../../lib/pg/types.ts'
import type { Days } from './compute.ts'
import { families } from './families.ts'
import { IS_OLDER, newest, noteIfOlder } from './older.ts'
import { DUE } from './renewals.ts'
import { takeSettings } from './settings.ts'
import { end, hasEnd } from './subscriptions.ts'

/** The most days that are computed in one transaction. */
export const LONGEST_RUN = 31

/** The projects that have marks. */
export async function markedProjects(query: Query): Promise<string[]> {
  const rows = await query(MARKED)
  return rows.map(({ project_id }) => project_id!)
}

// One index lookup for each project, however many marks it has.
const MARKED = `
  with recursive marked as (
    (select project_id from figure_marks order by project_id limit 1)
    union all
    select (select m.project_id from figure_marks m where m.project_id > p.project_id order by m.project_id limit 1)
    from marked p where p.project_id is not null)
  select project_id from marked where project_id is not null`

/** Marks the days that a program older than the schema has computed, unless this one is older as well. */
export async function markComputedByOlder(query: Query): Promise<void> {
  await query(COMPUTED_BY_OLDER, [await newest()])
}

const COMPUTED_BY_OLDER = `
  with again as (
    delete from figures_by_older where not ${IS_OLDER} returning project_id, family, day)
  insert into figure_marks (project_id, family, day) select project_id, family, day from again`

/** Marks all days of a project if it has the mark `all` or no figures yet. */
export async function expandMark(query: Query, projectId: string): Promise<void> {
  const [row] = await query(ALL_WANTED, [projectId])
  if (row!.wanted === 't') await markAll(query, projectId)
}

const ALL_WANTED = `
  select exists (select from figure_marks where project_id = $1 and family = 'all')
    or not exists (select from figure_progress where project_id = $1)
    or not exists (
      select from projects p join figure_settings s on s.project_id = p.id
      where p.id = $1 and s.time_zone = p.time_zone and s.currency = p.reporting_currency) as wanted`

/** Marks all days of a project, in its present time zone: those with records, and those with stored figures. */
export async function markAll(query: Query, projectId: string): Promise<void> {
  await takeSettings(query, projectId)
  await noteIfOlder(query, projectId, 'all', { from: 'today', to: 'tomorrow' })
  await query('delete from figure_marks where project_id = $1', [projectId])
  await query(MARK_ALL, [projectId])
}

const OF_REPORT = 'organization_id = (select organization_id from projects where id = $1)'

const DAYS: [family: string, at: string, table: string, where?: string][] = [
  ['visits', 'created_at', 'sessions'],
  ['experiments', 'created_at', 'sessions', 'project_id = $1 and experiment_id is not null'],
  ['sales', 'created_at', 'transactions'],
  ['sales', paidAt('report_transactions'), 'report_transactions', OF_REPORT],
  ['payments', paidAt('report_transactions'), 'report_transactions', OF_REPORT],
  [
    'declines',
    paidAt('report_transactions'),
    'report_transactions',
    `${OF_REPORT} and psp_transaction_type = 'sale' and status = 'failed'`,
  ],
  ['subscriptions', 'created_at', 'subscriptions'],
  ['subscriptions', 'created_at', 'transactions'],
  ['subscriptions', end('subscriptions'), 'subscriptions', `project_id = $1 and ${hasEnd('subscriptions')}`],
  ['renewals', 'period_ends_at', 'subscriptions', `project_id = $1 and status in ${DUE} and renews`],
]

// Also days that only have stored figures: their records may be gone.
const MARK_ALL = `
  insert into figure_marks (project_id, family, day)
  select distinct $1, family, day from (
    ${[
      ...DAYS.map(
        ([family, at, table, where = 'project_id = $1']) =>
          `select '${family}', ${dayIn(at, zoneOf('$1'))} from ${table} where ${where}`,
      ),
      `select 'visits', day from spend where project_id = $1`,
      ...families.map(({ name, table }) => `select '${name}', day from ${table} where project_id = $1 and split = ''`),
    ].join(' union all ')}) days (family, day) where day is not null`

/** The runs of a pass over the marks of a project. */
export interface Runs {
  /** By family: how many days its next run may have; 1 if it is missing. */
  days: Map<string, number>
  /** By family: the first day of the last run. That day and later ones are left to the next pass. */
  taken: Map<string, string>
}

export const beginRuns = (): Runs => ({ days: new Map(), taken: new Map() })

/** Removes the marks of the next run of days of one family and returns the run; undefined if there is none. */
export async function takeMarks(
  query: Query,
  projectId: string,
  { days, taken }: Runs,
): Promise<{ family: string; days: Days } | undefined> {
  const [run] = await query(TAKE, [
    projectId,
    [...days.keys()],
    [...days.values()].map(String),
    [...taken.keys()],
    [...taken.values()],
  ])
  if (!run?.from) return undefined
  return { family: run.family!, days: { from: run.from, to: run.to! } }
}

// Newest days first, because they are viewed most. Marks that a concurrent import commits stay. A day that changes all the time
// is taken once in a pass: otherwise the pass would not end.
const TAKE = `
  with newest as (
    select family, day from figure_marks m where project_id = $1 and family <> 'all' and not exists (
      select from unnest($4::text[], $5::date[]) taken (family, day) where taken.family = m.family and m.day >= taken.day)
    order by day desc, family limit 1
  ), longest as (
    select coalesce((select l.days from unnest($2::text[], $3::int[]) l (family, days) where l.family = n.family), 1) as days
    from newest n
  ), days as (
    select distinct m.day from figure_marks m join newest n on m.family = n.family
    where m.project_id = $1 and m.day > n.day - (select days from longest) and m.day <= n.day
  ), run as (
    -- In a run without gaps, the sum of a day and its position from the end is the same for all days.
    select day from (select day, day + row_number() over (order by day desc)::int as sum from days) placed
    where sum = (select day + 1 from newest)
  ), gone as (
    delete from figure_marks m using newest n
    where m.project_id = $1 and m.family = n.family and m.day in (select day from run) returning 1)
  select (select family from newest) as family, min(day) as "from", max(day) + 1 as "to" from run`
