// Marks the days whose figures were changed by charges and refunds, found by the clocks of organizations: charges do not write
// marks, to stay fast. All other records are written by imports, which mark their days themselves.
import { paidAt } from '../../core/records/payment-time.ts'
import { dayIn } from '../../core/tenants/reporting.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Query } from '../../lib/pg/types.ts'
import { declinesAround } from './declines.ts'
import { LOCK_CLASS, limitFigures } from './lock.ts'

const MAX_ORGANIZATIONS = 500

/**
 * The transactions that were writing at an instant, as JSON. A change that commits after that instant is stamped after the begin of
 * its transaction, or after the instant.
 */
export type Writers = string

// The lock for marking. No project has this number: they begin at 1.
const REPORTS = 0

/**
 * Marks the days of all charges and refunds that were committed since the last call, in one process at a time. Returns the
 * transactions that were writing at the beginning.
 */
export function followReports(db: Db): Promise<Writers> {
  return db.tx(async (query) => {
    await limitFigures(query)
    await query(`select pg_advisory_xact_lock(${LOCK_CLASS}, ${REPORTS})`)
    return markReports(query)
  })
}

async function markReports(query: Query): Promise<Writers> {
  const [look] = await query(WRITERS)
  for (;;) {
    const organizations = await query({ name: 'mark reports', text: MARK }, [MAX_ORGANIZATIONS, look!.writers!])
    if (organizations.length < MAX_ORGANIZATIONS) return look!.writers!
  }
}

// A transaction that writes records holds its project's advisory lock; one that writes the payment report locks the table of clocks.
const WRITERS = `
  select coalesce(json_agg(w), '[]') as writers from (
    select null::bigint as project, db_clock() as at
    union all
    select case l.locktype when 'advisory' then l.objid::bigint end, coalesce(a.xact_start, '1970-01-01T00:00:00Z')
    from pg_locks l left join pg_stat_activity a using (pid)
    where l.granted and l.database = (select oid from pg_database where datname = current_database())
      and (l.locktype = 'advisory' and l.objsubid = 2 and l.classid = write_lock_class()
        or l.locktype = 'relation' and l.relation = 'organization_clocks'::regclass and l.mode = 'RowExclusiveLock')) w`

/** SQL: the instant before which these writers can no longer change the projects of the condition. */
export const beforeWriters = (writers: string, isProject: string) => `(
  select min(w.at) from json_to_recordset(${writers}::json) w (project bigint, at timestamptz)
  where w.project is null or w.project ${isProject})`

/** SQL: whether an organization has rows of the report whose days are not marked yet. `c` is its clock, `f` its progress. */
export const HAS_NEWS = `c.last_trx_created_at > coalesce(f.reported, '-infinity')`

// A clock and the rows that it stamped become visible together, in the order of the stamps: no row appears later with a stamp
// below a visible clock. The transaction of a charge is stamped before its row, in the same database transaction; it has the time
// of the payment, which may be much earlier. Then later payments of the month may no longer be the first of their payer.
const MARK = `
  with due as materialized (
    select c.organization_id, c.last_trx_created_at as until, coalesce(f.reported, '-infinity') as reported
    from organization_clocks c left join figure_reports f using (organization_id) where ${HAS_NEWS} limit $1
  ), news as materialized (
    select c.project_id, c.profile_id, c.zone, due.organization_id, r.external_id, r.at, r.paid_at, r.returned_of
    from due
    cross join lateral (
      select r.external_id, r.trx_created_at as at, ${paidAt('r')} as paid_at,
        case when r.psp_transaction_type <> 'sale' then r.order_id end as returned_of
      from report_transactions r
      where r.organization_id = due.organization_id and r.trx_created_at > due.reported
        and r.trx_created_at <= due.until and not r.imported
      order by r.trx_created_at offset 0) r
    cross join lateral (
      select c.project_id, c.profile_id, p.time_zone as zone from customers c left join projects p on p.id = c.project_id
      where c.organization_id = due.organization_id and c.external_id = r.external_id offset 0) c
  ), changed as (
    select project_id, days.family, ${dayIn('days.at', 'zone')} as day from news
    cross join lateral (
      values ('sales', news.at), ('sales', news.at - interval '15 minutes'), ('sales', paid_at), ('payments', paid_at)
    ) days (family, at)
    union all
    select project_id, 'sales', day::date from news
    cross join lateral generate_series(date_trunc('day', paid_at at time zone zone), least(
      news.at at time zone zone, date_trunc('month', paid_at at time zone zone) + interval '1 month - 1 day'),
      interval '1 day') day
    union all
    -- The first transaction of a person who paid before without one: it is their first payment now.
    select project_id, 'sales', ${dayIn(paidAt('o'), 'zone')} from (
      select distinct project_id, zone, organization_id, external_id from news
      where profile_id is not null and (
        select count(*) from (
          select from transactions t where t.project_id = news.project_id and t.profile_id = news.profile_id and t.price > 0
          order by t.created_at, t.id limit 2) two) < 2) begun
    join report_transactions o on o.organization_id = begun.organization_id and o.external_id = begun.external_id
      and (o.psp_transaction_type <> 'sale' or o.status = 'succeeded')
    union all
    -- What goes back belongs to the day of its payment too.
    select news.project_id, 'sales', ${dayIn(paidAt('o'), 'news.zone')}
    from news join report_transactions o on o.organization_id = news.organization_id and o.order_id = news.returned_of
    union all
    select news.project_id, 'declines', ${dayIn(paidAt('o'), 'news.zone')}
    from news join report_transactions o on ${declinesAround('o', 'news.organization_id', 'news.external_id', 'news.paid_at')}
    union all
    select project_id, 'experiments', ${dayIn('e.created_at', 'zone')} from (
      select distinct project_id, zone, profile_id from news where profile_id is not null) who
    cross join lateral (
      select e.created_at from sessions e
      where e.project_id = who.project_id and e.profile_id = who.profile_id and e.experiment_id is not null offset 0) e
  ), marked as (
    insert into figure_marks (project_id, family, day)
    select distinct project_id, family, day from changed
  )
  insert into figure_reports as f (organization_id, reported, followed_at)
  select organization_id, until, ${beforeWriters('$2', 'in (select number from projects p where p.organization_id = due.organization_id)')}
  from due
  on conflict (organization_id) do update set reported = greatest(f.reported, excluded.reported),
    followed_at = greatest(f.followed_at, excluded.followed_at)
  returning 1`
