// The queue of deliveries, in SQL: take due deliveries fairly, record outcomes.
import type { Db } from '../../lib/pg/db.ts'
import type { Statement } from '../../lib/pg/types.ts'
import { instantFromPg } from '../../lib/time.ts'
import { LEAVING_PROJECTS } from '../tenants/leaving.ts'
import { readRetryAfter, waitAfter } from './schedule.ts'
import type { Outcome } from './send.ts'

/** A delivery taken by this process, with everything one attempt needs. */
export interface Taken {
  project_id: string
  event_id: string
  endpoint_id: string
  url: string
  /** The number of this attempt, over the delivery's whole life. */
  attempt: number
  /** How often it failed since it was last sent. */
  failures: number
  /** When it was taken, as the database has it. It is another when the event is sent again, or the delivery is taken again. */
  scheduledAt: string
  /** The database's time, which is sent to receivers. */
  nowSeconds: number
  body: string
  /** The object's data in `body`. */
  data: string
}

/** How many deliveries to take. Healthy and failing endpoints have separate lanes. */
export interface Lane {
  failing: boolean
  /** At most this many in total, and this many of one endpoint at once. */
  limit: number
  perEndpoint: number
  /** The number of attempts of each endpoint in progress in this process. */
  busy: ReadonlyMap<string, number>
}

/** Longer than any attempt: a delivery that is due again after this was taken by a process that has died. */
const LEASE_SECONDS = 30
/** From this many due deliveries on, all endpoints are looked at; below it only those that have one. */
const MANY_DUE = 500
/** An endpoint that failed for this long without a success is disabled. */
const PATIENCE = '5 days'

/** Whether there is anything to fan out or to deliver: two probes of an index. */
export async function anythingDue(db: Db): Promise<boolean> {
  const [row] = await db.read(ANYTHING_DUE, [])
  return row!.text(0) === 't'
}

const ANYTHING_DUE = {
  name: 'anything due',
  text: `select exists (select from events where pending) or exists (
           select from webhook_deliveries where status = 'pending' and next_attempt_at <= (select db_clock()))`,
}

/**
 * Takes due deliveries: the first of each endpoint before the second of any, so that the backlog of one endpoint does not
 * delay another. Taking a delivery moves its due time past the lease. While little is due, only the endpoints of what is due are
 * looked at, so that thousands of idle ones cost nothing. Those of an organization that is leaving are left out: its keys have
 * ended here, and the other shard delivers.
 */
export async function take(db: Db, { failing, limit, perEndpoint, busy }: Lane): Promise<Taken[]> {
  if (limit <= 0) return []
  const rows = await db.query(TAKE, [
    failing,
    limit,
    perEndpoint,
    [...busy.keys()],
    [...busy.values()].map(String),
    LEASE_SECONDS,
    MANY_DUE,
  ])
  return rows.map((row) => ({
    project_id: row.project_id!,
    event_id: row.event_id!,
    endpoint_id: row.endpoint_id!,
    url: row.url!,
    attempt: Number(row.attempts),
    failures: Number(row.failures),
    scheduledAt: row.scheduled_at!,
    nowSeconds: Number(row.now_seconds),
    body: eventBody(row),
    data: row.data!,
  }))
}

const TAKE: Statement = {
  name: 'take deliveries',
  text: `
  with now as materialized (select db_clock() as at),
  first_due as materialized (
    select project_id, endpoint_id from webhook_deliveries
    where status = 'pending' and next_attempt_at <= (select at from now) order by next_attempt_at limit $7
  ),
  candidates as materialized (
    select e.project_id, e.id from (
      select distinct project_id, endpoint_id from first_due where (select count(*) from first_due) < $7
    ) f cross join lateral (
      select project_id, id from webhook_endpoints e
      where e.project_id = f.project_id and e.id = f.endpoint_id and e.enabled and (e.failing_since is not null) = $1
      limit 1
    ) e
    union all
    select project_id, id from webhook_endpoints
    where (select count(*) from first_due) = $7 and enabled and (failing_since is not null) = $1
  ),
  endpoints as materialized (select * from candidates where project_id <> all (${LEAVING_PROJECTS})),
  due as materialized (
    select d.* from endpoints e
    left join unnest($4::uuid[], $5::int[]) as busy (endpoint_id, n) on busy.endpoint_id = e.id
    cross join lateral (
      select w.project_id, w.event_id, w.endpoint_id, w.next_attempt_at,
        row_number() over (order by w.next_attempt_at) + coalesce(busy.n, 0) as turn
      from webhook_deliveries w
      where w.project_id = e.project_id and w.endpoint_id = e.id and w.status = 'pending'
        and w.next_attempt_at <= (select at from now)
      order by w.next_attempt_at limit greatest($3 - coalesce(busy.n, 0), 0)
    ) d
    order by d.turn, d.next_attempt_at limit $2
  ),
  mine as materialized (
    select due.project_id, due.event_id, due.endpoint_id from due cross join lateral (
      select from webhook_deliveries w
      where w.project_id = due.project_id and w.event_id = due.event_id and w.endpoint_id = due.endpoint_id
        and w.status = 'pending' and w.next_attempt_at <= (select at from now)
      for no key update skip locked
    ) locked
  ),
  taken as (
    update webhook_deliveries w
    set attempts = w.attempts + 1, next_attempt_at = (select at from now) + make_interval(secs => $6),
      scheduled_at = (select at from now)
    from mine
    where w.project_id = mine.project_id and w.event_id = mine.event_id and w.endpoint_id = mine.endpoint_id
    returning w.project_id, w.event_id, w.endpoint_id, w.attempts, w.failures, w.scheduled_at
  )
  select t.*, p.url, v.type, v.created_at, v.sequence, v.data,
    floor(extract(epoch from (select at from now)))::bigint as now_seconds
  from taken t
  join webhook_endpoints p on p.project_id = t.project_id and p.id = t.endpoint_id
  join events v on v.project_id = t.project_id and v.id = t.event_id`,
}

/** The body of a delivery: made from the event's row alone, so that it is the same at every attempt. */
export function eventBody(row: Record<string, string | null>): string {
  const head = { id: row.event_id!, type: row.type!, created_at: instantFromPg(row.created_at!) }
  const fields = Object.entries({ ...head, project_id: row.project_id! })
  const texts = fields.map(([name, value]) => `"${name}":${JSON.stringify(value)}`)
  return `{${texts.join(',')},"sequence":${row.sequence},"data":${row.data}}`
}

/** Records the outcome of an attempt, when the next one is due, and the health of the endpoint. */
export async function settle(db: Db, taken: Taken, outcome: Outcome, durationMs: number): Promise<void> {
  const { status, error } = outcome
  const good = status !== undefined && status >= 200 && status < 300
  const wait = waitAfter(taken.failures + 1, readRetryAfter(outcome.retryAfter, taken.nowSeconds))
  await db.query(SETTLE, [
    taken.project_id,
    taken.event_id,
    taken.endpoint_id,
    taken.attempt,
    Math.round(durationMs),
    status ?? null,
    error ?? null,
    outcome.answer ?? null,
    good,
    wait ?? null,
    status === 410,
    PATIENCE,
    taken.data,
    taken.url,
    taken.scheduledAt,
  ])
}

// The response of an address that has been replaced since says nothing about the endpoint.
//
// Of several concurrent attempts (a lease ran out, an operator sent the event again) only the newest decides the delivery.
// The response may repeat what was sent, so the event is locked first: if an erasure has emptied it since, the response
// is dropped, and a later erasure finds it. Nor is a response kept about a person who was erased before.
const SETTLE: Statement = {
  name: 'settle delivery',
  text: `
  with event as materialized (
    select v.data::text <> $13 or exists (
      select from profiles p where p.project_id = v.project_id and p.id = v.profile_id and p.anonymized_at is not null
    ) as erased
    from events v where v.project_id = $1 and v.id = $2 and $8 <> '' for share of v
  ), delivery as (
    update webhook_deliveries set
      failures = case when $9 then failures else failures + 1 end,
      status = case when $9 then 'succeeded' when $10::float8 is null then 'failed' else 'pending' end,
      finished_at = case when $9 or $10::float8 is null then db_clock() end,
      next_attempt_at = case when not $9 then db_clock() + make_interval(secs => $10::float8) end,
      scheduled_at = db_clock()
    where project_id = $1 and event_id = $2 and endpoint_id = $3 and scheduled_at = $15 and status = 'pending'
  ), attempt as (
    insert into webhook_attempts
      (project_id, event_id, endpoint_id, number, attempted_at, duration_ms, status, error, answer, url)
    select $1, $2, $3, $4, db_clock() - make_interval(secs => $5::int / 1000.0), $5::int, $6::int, $7,
      case when not coalesce((select erased from event), false) then $8 end, $14
    from webhook_deliveries where project_id = $1 and event_id = $2 and endpoint_id = $3
    on conflict do nothing
  )
  update webhook_endpoints set
    failing_since = case when not $9 then coalesce(failing_since, db_clock()) end,
    enabled = enabled and ($9 or not $11 and not past_limit),
    disabled_because = case when not enabled then disabled_because
      when not $9 and $11 then 'gone' when not $9 and past_limit then 'failing' end,
    updated_at = db_clock()
  from (select coalesce(failing_since < db_clock() - $12::interval, false) as past_limit
        from webhook_endpoints where project_id = $1 and id = $3) seen
  where project_id = $1 and id = $3 and url = $14 and
    case when $9 then failing_since is not null else $11 or past_limit or failing_since is null end`,
}

/** Makes deliveries due now that were postponed by a database clock that has been set back since. */
export async function makeDue(db: Db): Promise<void> {
  await db.query(
    `update webhook_deliveries set next_attempt_at = db_clock(), scheduled_at = db_clock()
     where status = 'pending' and coalesce(scheduled_at, created_at) > db_clock()`,
  )
}

/** Returns a delivery to the queue without an attempt, for another process or the next start. */
export async function giveBack(db: Db, { project_id, event_id, endpoint_id, scheduledAt }: Taken): Promise<void> {
  await db.query(
    `update webhook_deliveries set next_attempt_at = db_clock(), scheduled_at = db_clock()
     where project_id = $1 and event_id = $2 and endpoint_id = $3 and scheduled_at = $4 and status = 'pending'`,
    [project_id, event_id, endpoint_id, scheduledAt],
  )
}
