// Days whose figures have to be computed again: found by following the project, marked by imports, taken in runs.
import type { Query } from '../lib/pg/types.ts'
import type { Days } from './compute.ts'
import { families } from './families.ts'

/** The most days of a run: so many are computed in one transaction. */
export const LONGEST_RUN = 31

/**
 * Marks the days of what was written since the last look, up to `horizon`: charges write transactions and rows of the
 * report, and need not wait for a mark. Whatever else writes records is an import, which marks its days itself.
 */
export async function markNews(query: Query, projectId: string, horizon: string): Promise<void> {
  const [progress] = await query('select horizon, reported from figure_progress where project_id = $1', [projectId])
  if (!progress) return begin(query, projectId, horizon)
  await query(MARK_TRANSACTIONS, [projectId, progress.horizon!, horizon])
  const [reported] = await query(MARK_REPORT, [projectId, progress.reported!])
  await query(
    `update figure_progress set horizon = greatest(horizon, $2), reported = $3, updated_at = db_clock()
     where project_id = $1`,
    [projectId, horizon, reported!.last!],
  )
}

async function begin(query: Query, projectId: string, horizon: string): Promise<void> {
  await query(
    `insert into figure_progress (project_id, horizon, reported)
     select p.id, $2, coalesce((
       select max(trx_created_at) from report_transactions r where r.organization_id = p.organization_id), '-infinity')
     from projects p where p.id = $1`,
    [projectId, horizon],
  )
  await markAll(query, projectId)
}

const MARK_TRANSACTIONS = `
  insert into figure_marks (project_id, family, day)
  select distinct t.project_id, 'sales', (t.created_at at time zone 'UTC')::date
  from transactions t where t.project_id = $1 and t.updated_at >= $2 and t.updated_at < $3`

// Rows become visible in the order of their stamps: behind the last one that is visible, none appears.
const MARK_REPORT = `
  with news as materialized (
    select r.trx_created_at as at, c.project_id
    from projects p
    join report_transactions r on r.organization_id = p.organization_id and r.trx_created_at > $2
    join customers c on c.organization_id = r.organization_id and c.external_id = r.external_id
    where p.id = $1
  ), marked as (
    insert into figure_marks (project_id, family, day)
    select distinct $1, family, (at at time zone 'UTC')::date from news
    cross join (values ('sales'), ('payments')) families (family) where project_id = $1)
  select greatest($2::timestamptz, (select max(at) from news)) as last`

/** Marks every day there is. */
async function markAll(query: Query, projectId: string): Promise<void> {
  await query('delete from figure_marks where project_id = $1', [projectId])
  await query(MARK_ALL, [projectId])
}

const END = 'subscription_end(status, period_ends_at, cancelled_at, paused_at, created_at)'
const OF_REPORT = 'organization_id = (select organization_id from projects where id = $1)'

const DAYS: [family: string, at: string, table: string, where?: string][] = [
  ['visits', 'created_at', 'sessions'],
  ['sales', 'created_at', 'transactions'],
  ['sales', 'trx_created_at', 'report_transactions', OF_REPORT],
  ['payments', 'trx_created_at', 'report_transactions', OF_REPORT],
  ['subscriptions', 'created_at', 'subscriptions'],
  ['subscriptions', 'created_at', 'transactions'],
  ['subscriptions', END, 'subscriptions', `project_id = $1 and status in ('paused', 'cancelled', 'expired', 'unpaid')`],
]

// Also days that only old figures know: what they tell of may be gone.
const MARK_ALL = `
  insert into figure_marks (project_id, family, day)
  select distinct $1, family, day from (
    ${[
      ...DAYS.map(
        ([family, at, table, where = 'project_id = $1']) =>
          `select '${family}', (${at} at time zone 'UTC')::date from ${table} where ${where}`,
      ),
      ...families.map(({ name, table }) => `select '${name}', day from ${table} where project_id = $1 and split = ''`),
    ].join(' union all ')}) days (family, day) where day is not null`

/** Removes the marks of a run of days of one family and returns it; undefined when there is none. */
export async function takeMarks(
  query: Query,
  projectId: string,
  mostDays: number,
): Promise<{ family: string; days: Days } | undefined> {
  const [taken] = await query(TAKE, [projectId, mostDays])
  if (!taken?.from) return undefined
  return { family: taken.family!, days: { from: taken.from, to: taken.to! } }
}

// The newest days first: they are looked at most. What an import commits meanwhile stays marked.
const TAKE = `
  with newest as (
    select family, day from figure_marks where project_id = $1 order by day desc, family limit 1
  ), days as (
    select distinct m.day from figure_marks m join newest n on m.family = n.family
    where m.project_id = $1 and m.day > n.day - $2::int
  ), run as (
    -- In a run without a gap the day and its place from the end add up to the same.
    select day from (select day, day + row_number() over (order by day desc)::int as sum from days) placed
    where sum = (select day + 1 from newest)
  ), gone as (
    delete from figure_marks m using newest n
    where m.project_id = $1 and m.family = n.family and m.day in (select day from run) returning 1)
  select (select family from newest) as family, min(day) as "from", max(day) + 1 as "to" from run`
