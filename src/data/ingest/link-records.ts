// Fills the session, funnel and experiment of subscriptions and transactions that were stored before these were known.
import { dayIn, zoneOf } from '../../core/tenants/reporting.ts'
import type { Query, Statement } from '../../lib/pg/types.ts'
import { end } from '../figures/subscriptions.ts'

interface Link {
  record: string
  id: string
  field: string
  named: string
}

const TABLES = { subscription: 'subscriptions', transaction: 'transactions' } as const

/** Sets what is not set, with new stamps; the named records exist. Transactions inherit what their subscription gets. */
export async function linkRecords(query: Query, projectId: string, base: string, links: Link[]): Promise<void> {
  if (links.length === 0) return
  const idsOf = (record: string) => [...new Set(links.filter((one) => one.record === record).map(({ id }) => id))]
  await query(LOCK, [projectId, idsOf('subscription')])
  // A named funnel or experiment is nearer than that of the session.
  for (const field of ['funnel_id', 'experiment_id', 'session_id'] as const)
    for (const [record, table] of Object.entries(TABLES)) {
      const mine = links.filter((one) => one.record === record && one.field === field)
      if (mine.length === 0) continue
      const rows = [mine.map(({ id }) => id), mine.map(({ named }) => named)]
      await query(field === 'session_id' ? setSession(table) : setField(table, field), [projectId, base, ...rows])
    }
  await inherit(query, projectId, base, idsOf('transaction'), idsOf('subscription'))
  await query(MARK, [projectId, idsOf('subscription'), idsOf('transaction')])
}

/** Gives these transactions, and those of these subscriptions, the session, funnel and experiment of their subscription. */
export async function inherit(
  query: Query,
  projectId: string,
  base: string,
  transactions: string[],
  subscriptions: string[],
): Promise<void> {
  await query(inheriting('t.id = any($3)'), [projectId, base, transactions])
  await query(inheriting('u.id = any($3)'), [projectId, base, subscriptions])
}

const LOCK = 'select from subscriptions where project_id = $1 and id = any($2) order by id for no key update'
const STAMP = "updated_at = greatest(db_clock(), $2::timestamptz, t.updated_at + interval '1 microsecond')"
const GIVEN = 'unnest($3::text[], $4::text[]) g (id, named)'
const OF_SESSION: Record<string, string> = {
  session_id: 'id',
  funnel_id: 'funnel_id',
  funnel_version: 'funnel_version',
  experiment_id: 'experiment_id',
  funnel_locale: 'locale',
}

/** Counts subscriptions by their funnel, which was not set before. They are locked, so what the statement reads is what it changes. */
const counted = (table: string, change: string) =>
  table === 'transactions'
    ? change
    : `with before as materialized (
         select t.id from subscriptions t join ${GIVEN} on g.id = t.id
         where t.project_id = $1 and t.funnel_id is null
       ), changed as (${change} returning t.id, t.funnel_id)
       insert into counts (project_id, list, field, value, n)
       select $1, 'subscriptions', 'funnel_id', c.funnel_id, count(*) from changed c join before using (id)
       where c.funnel_id is not null group by c.funnel_id`

const setField = (table: string, field: string) =>
  counted(
    table,
    `update ${table} t set ${field} = g.named, ${STAMP} from ${GIVEN}
     where t.project_id = $1 and t.id = g.id and t.${field} is null`,
  )

const setSession = (table: string) =>
  counted(
    table,
    `update ${table} t set ${Object.entries(OF_SESSION).map(([column, of]) => `${column} = coalesce(t.${column}, s.${of})`)}, ${STAMP}
     from ${GIVEN} join sessions s on s.project_id = $1 and s.id = g.named
     where t.project_id = $1 and t.id = g.id and t.session_id is null`,
  )

const inheriting = (which: string) => `
  with changed as (
    update transactions t set ${Object.keys(OF_SESSION).map((column) => `${column} = coalesce(t.${column}, u.${column})`)}, ${STAMP}
    from subscriptions u where t.project_id = $1 and u.project_id = $1 and u.id = t.subscription_id and ${which}
      and (t.session_id is null and u.session_id is not null or t.funnel_id is null and u.funnel_id is not null
        or t.experiment_id is null and u.experiment_id is not null)
    returning t.created_at)
  insert into figure_marks (project_id, family, day)
  select distinct $1, family, ${dayIn('created_at', zoneOf('$1'))} from changed
  cross join (values ('sales'), ('subscriptions')) f (family)`

const MARK: Statement = {
  name: 'mark days of linked records',
  text: `
  insert into figure_marks (project_id, family, day)
  select distinct $1, family, ${dayIn('at', zoneOf('$1'))} from (
    select 'subscriptions', d.at from subscriptions u cross join lateral (values (u.created_at),
        (${end('u')})) d (at)
      where u.project_id = $1 and u.id = any($2)
    union all select family, t.created_at from transactions t cross join (values ('sales'), ('subscriptions')) f (family)
      where t.project_id = $1 and (t.id = any($3) or t.subscription_id = any($2))
    union all select 'visits', s.created_at from subscriptions u join sessions s on s.project_id = $1 and s.id = u.session_id
      where u.project_id = $1 and u.id = any($2)
    union all select 'visits', s.created_at from transactions t join sessions s on s.project_id = $1 and s.id = t.session_id
      where t.project_id = $1 and (t.id = any($3) or t.subscription_id = any($2))
  ) touched (family, at) where at is not null and isfinite(at)`,
}
