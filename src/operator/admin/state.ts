// The state of a project at this moment (charges, endpoints, erasures, horizon), delivery statistics, and names by their ids.

import { readHorizon } from '../../core/lists/horizon.ts'
import { figuresAsOf } from '../../data/figures/as-of.ts'
import { failedDays } from '../../data/figures/failures.ts'
import { jsonOf } from '../../lib/json/json.ts'
import { Type } from '../../lib/shape/schema.ts'
import { boolean, instant, integer, shape, text } from '../../lib/shape/shape.ts'
import { instantFromPg } from '../../lib/time.ts'
import { requireProject } from './exist.ts'
import { reading } from './operation.ts'

const TAG = 'State'
const count = (description: string) => Type.Integer({ description })
const seconds = (description: string) => Type.OrNull(Type.Number(), description)
const dateTime = Type.String({ format: 'date-time' })

const state = reading({
  id: 'getProjectState',
  right: 'figures',
  command: 'project state',
  path: '/projects/:project_id/state',
  tag: TAG,
  summary: 'Get the state of a project at this moment',
  response: Type.Named('ProjectState', {
    project_id: Type.String({ description: 'The project.' }),
    charges_in_progress: count('Charges whose outcome is not known yet.'),
    oldest_charge_at: Type.OrNull(
      dateTime,
      'When the oldest of them was claimed, except those pending at the provider.',
    ),
    refunds_in_progress: count('Refunds whose outcome is not known yet.'),
    endpoints: count('Webhook endpoints.'),
    endpoints_disabled: count('Endpoints that are disabled.'),
    endpoints_failing: count('Endpoints whose last deliveries failed.'),
    deliveries_waiting: count('Deliveries that have not succeeded yet.'),
    erasures_of_week: count('People erased in the last seven days.'),
    erasures: count('People erased in total.'),
    horizon: Type.String({
      format: 'date-time',
      description: 'Every change before this instant is visible to a sync.',
    }),
    horizon_lag_seconds: Type.Number({ description: 'How far the horizon is behind the clock.' }),
    oldest_writer_seconds: seconds('Age of the oldest running transaction that writes records.'),
    figures_as_of: Type.OrNull(dateTime, 'Every change before this instant is counted in the figures.'),
    figures_missing: Type.Array(Type.String(), {
      description: 'The newest hundred days whose figures cannot be computed.',
    }),
    subscriptions: Type.Record(Type.Integer(), { description: 'Number of subscriptions in each state.' }),
  }),
  async run({ db }, { params }) {
    const organizationId = await requireProject(db.query, params.project_id)
    const horizon = await readHorizon(db, params.project_id)
    const [[row], figures_as_of, missing] = await Promise.all([
      db.query(STATE, [params.project_id, organizationId, horizon]),
      figuresAsOf(db, [params.project_id]),
      failedDays(db, [params.project_id]),
    ])
    const { oldest_charge_at, subscriptions, ...rest } = row!
    const numbers = Object.entries(rest).map(([name, value]) => [name, value === null ? null : Number(value)])
    return {
      project_id: params.project_id,
      ...Object.fromEntries(numbers),
      oldest_charge_at: oldest_charge_at && instantFromPg(oldest_charge_at),
      figures_as_of: figures_as_of && instantFromPg(figures_as_of),
      figures_missing: missing.map(({ day }) => day),
      horizon,
      subscriptions: JSON.parse(subscriptions ?? '{}'),
    }
  },
})

const STATE = `
  select
    (select count(*) from orders where organization_id = $2 and project_id = $1 and status = 'processing')
      as charges_in_progress,
    (select min(created_at) from orders where organization_id = $2 and project_id = $1 and status = 'processing'
       and pending_since is null) as oldest_charge_at,
    (select count(*) from refunds r join orders o using (organization_id, order_id)
     where r.organization_id = $2 and o.project_id = $1 and r.status = 'processing') as refunds_in_progress,
    endpoints.*,
    (select count(*) from webhook_deliveries d join webhook_endpoints e using (project_id)
     where d.project_id = $1 and d.status = 'pending' and e.id = d.endpoint_id and e.removed_at is null) as deliveries_waiting,
    (select count(*) from erasures where project_id = $1 and erased_at > db_clock() - interval '7 days')
      as erasures_of_week,
    (select count(*) from erasures where project_id = $1) as erasures,
    extract(epoch from db_clock() - $3::timestamptz) as horizon_lag_seconds,
    (select extract(epoch from max(clock_timestamp() - a.xact_start)) from pg_locks l join pg_stat_activity a using (pid)
     where l.locktype = 'advisory' and l.objsubid = 2 and l.granted and l.classid = write_lock_class()
       and l.objid = (select number from projects where id = $1)) as oldest_writer_seconds,
    (select json_object_agg(value, n) from (
       select value, sum(n) as n from counts where project_id = $1 and list = 'subscriptions' and field = 'status'
       group by value having sum(n) > 0) states) as subscriptions
  from (
    select count(*) as endpoints, count(*) filter (where not enabled) as endpoints_disabled,
      count(failing_since) as endpoints_failing
    from webhook_endpoints where project_id = $1 and removed_at is null) endpoints`

const statisticsOf = shape('EndpointStatistics', 'e', {
  endpoint_id: text('Endpoint.', { sql: 'e.id' }),
  url: text('URL to which deliveries are posted.'),
  enabled: boolean('Whether the endpoint is enabled.'),
  disabled_because: text('Why it was disabled.', { nullable: true }),
  failing_since: instant('The first failure since the last success.', { nullable: true }),
  attempts: integer('Attempts.', { sql: 'a.attempts' }),
  succeeded: integer('Attempts with a 2xx response.', { sql: 'a.succeeded' }),
  p50_ms: integer('Median duration of the attempts, in milliseconds.', { sql: 'a.p50_ms', nullable: true }),
  p95_ms: integer('95th percentile of the duration, in milliseconds.', { sql: 'a.p95_ms', nullable: true }),
  waiting: integer('Deliveries that have not succeeded yet.', { sql: 'w.waiting' }),
  last_error: text('The error of the last failed attempt.', { sql: 'l.last_error', nullable: true }),
})

const statistics = reading({
  id: 'getWebhookStatistics',
  right: 'setup',
  command: 'webhook statistics',
  path: '/projects/:project_id/webhook-statistics',
  tag: 'Webhooks',
  summary: 'Get delivery statistics of each endpoint',
  description: 'About the attempts of the last seven days.',
  response: Type.Named('WebhookStatistics', {
    data: Type.Array(statisticsOf.schema, { description: 'An item for each endpoint, newest first.' }),
  }),
  async run({ db }, { params }) {
    return jsonOf({ data: statisticsOf.list(await db.readLong(STATISTICS, [params.project_id])) })
  },
})

const STATISTICS = {
  text: `
  select ${statisticsOf.columns}
  from webhook_endpoints e
  cross join lateral (
    select count(*) as attempts, count(*) filter (where a.status between 200 and 299) as succeeded,
      round(percentile_cont(0.5) within group (order by a.duration_ms)) as p50_ms,
      round(percentile_cont(0.95) within group (order by a.duration_ms)) as p95_ms
    from webhook_deliveries d
    join webhook_attempts a using (project_id, event_id, endpoint_id)
    where d.project_id = e.project_id and d.endpoint_id = e.id and d.created_at > db_clock() - interval '7 days'
      and a.attempted_at > db_clock() - interval '7 days') a
  cross join lateral (
    select count(*) as waiting from webhook_deliveries d
    where d.project_id = e.project_id and d.endpoint_id = e.id and d.status = 'pending') w
  left join lateral (
    select coalesce(a.error, 'HTTP ' || a.status) as last_error
    from webhook_deliveries d
    join webhook_attempts a using (project_id, event_id, endpoint_id)
    where d.project_id = e.project_id and d.endpoint_id = e.id and d.failures > 0
      and (a.status is null or a.status not between 200 and 299)
    order by a.attempted_at desc limit 1) l on true
  where e.project_id = $1 and e.removed_at is null order by e.created_at desc, e.id desc`,
}

const nameOf = (description: string) => Type.Record(Type.String(), { description })

const names = reading({
  id: 'getProjectNames',
  right: 'figures',
  command: 'project names',
  path: '/projects/:project_id/names',
  tag: TAG,
  summary: 'Get the names of funnels, products and experiments by their ids',
  response: Type.Named('ProjectNames', {
    funnels: nameOf('Titles of funnels.'),
    products: nameOf('Names of products.'),
    experiments: nameOf('Titles of experiments.'),
  }),
  async run({ db }, { params }) {
    const [row] = await db.query(NAMES, [params.project_id, MAX_NAMES])
    const { funnels, products, experiments } = row!
    return { funnels: JSON.parse(funnels!), products: JSON.parse(products!), experiments: JSON.parse(experiments!) }
  },
})

// Only the newest: the dashboard shows an object without a name here by its id. A name of blanks alone would be an invisible link.
const MAX_NAMES = 2000
const namesIn = (table: string, column: string) => `
  (select coalesce(json_object_agg(id, ${column}), '{}') from (
     select id, ${column} from ${table} where project_id = $1 and ${column} ~ '\\S'
     order by created_at desc limit $2) newest) as ${table}`

const NAMES = `select ${namesIn('funnels', 'title')}, ${namesIn('products', 'name')}, ${namesIn('experiments', 'title')}`

export const projectState = [state, names, statistics] as const
