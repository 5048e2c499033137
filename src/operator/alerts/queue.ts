// The queue of messages, in SQL: add, take those that are due, record outcomes.

import { receives } from '../../core/events/alert-addresses.ts'
import { readRetryAfter } from '../../core/events/schedule.ts'
import type { Outcome } from '../../core/events/send.ts'
import { LEAVING_PROJECTS } from '../../core/tenants/leaving.ts'
import type { Db } from '../../lib/pg/db.ts'
import { ZONE } from './state.ts'

// Seconds from a failure to the next attempt: after a day an alert is of no use.
const WAITS_SECONDS = [60, 300, 900, 3600, 7200, 14_400]
// Longer than any attempt: a message that is due again after this was taken by a process that has died.
const LEASE = '2 minutes'
const BATCH = 16

/** SQL: adds a message for each destination that receives it, if `claimed` has a row. */
export const addMessages = (kind: string, what: 'alert' | 'digest', rule: string, day: string, content: string) => `
  insert into alert_messages
    (project_id, id, destination_id, kind, rule_id, day, content, created_at, next_attempt_at, scheduled_at)
  select d.project_id, gen_random_uuid(), d.id, '${kind}', ${rule}, ${day}, ${content}, at, at, at
  from claimed, alert_destinations d, (select db_clock() as at) now
  where d.project_id = $1 and ${receives(what)}
  on conflict do nothing`

/** A message that this process sends. */
export interface Taken {
  projectId: string
  id: string
  kind: string
  ruleId: string
  day: string
  /** JSON; null: it is written now. */
  content: string | null
  createdAt: string
  /** By the database's clock, in seconds since 1970. */
  takenAt: number
  attempt: number
  destination: { id: string; kind: string; address: string; shown: string }
}

/** Takes messages that are due. In quiet hours only those that an operator sends now are. */
export async function take(db: Db): Promise<Taken[]> {
  const rows = await db.query(TAKE, [BATCH, LEASE])
  return rows.map((row) => ({
    projectId: row.project_id!,
    id: row.id!,
    kind: row.kind!,
    ruleId: row.rule_id!,
    day: row.day!,
    content: row.content!,
    createdAt: row.created_at!,
    takenAt: Number(row.taken_at),
    attempt: Number(row.attempts),
    destination: { id: row.destination_id!, kind: row.destination_kind!, address: row.address!, shown: row.shown! },
  }))
}

const QUIET = `(case when s.quiet_from < s.quiet_to then now.hour >= s.quiet_from and now.hour < s.quiet_to
  else now.hour >= s.quiet_from or now.hour < s.quiet_to end)`

// A message that was postponed by a clock that is far ahead is due when the clock was set back.
const TAKE = `
  with due as (
    select m.project_id, m.id from alert_messages m
    join projects p on p.id = m.project_id
    left join alert_settings s on s.project_id = m.project_id
    cross join lateral (select extract(hour from db_clock() at time zone ${ZONE}) as hour) now
    where m.status = 'pending' and (m.next_attempt_at <= db_clock() or m.scheduled_at > db_clock() + interval '10 minutes')
      and m.project_id <> all (${LEAVING_PROJECTS})
      and (m.kind = 'test' or s.quiet_from is null or not ${QUIET})
    order by m.next_attempt_at limit $1 for no key update of m skip locked
  )
  update alert_messages m set attempts = m.attempts + 1, next_attempt_at = db_clock() + $2::interval, scheduled_at = db_clock()
  from due, alert_destinations d
  where m.project_id = due.project_id and m.id = due.id and d.project_id = m.project_id and d.id = m.destination_id
  returning m.project_id, m.id, m.kind, m.rule_id, m.day::text, m.content, m.created_at, m.attempts, m.destination_id,
    d.kind as destination_kind, d.address, d.shown, floor(extract(epoch from db_clock()))::bigint as taken_at`

/** The outcome of an attempt, without the body of the response. */
export type Result = Omit<Outcome, 'answer'>

/** Records the outcome of an attempt, when the next one is due, and the health of the destination. */
export async function settle(db: Db, taken: Taken, outcome: Result): Promise<void> {
  const { status, error } = outcome
  const isSent = status !== undefined && status >= 200 && status < 300
  const after = readRetryAfter(outcome.retryAfter, taken.takenAt) ?? 0
  const wait = WAITS_SECONDS[taken.attempt - 1]
  const seconds = wait === undefined ? null : Math.min(Math.max(wait, after), WAITS_SECONDS.at(-1)!)
  const why = isSent ? null : (error ?? `Status ${status}.`)
  const { id, kind, shown } = taken.destination
  await db.query(SETTLE, [taken.projectId, taken.id, taken.attempt, isSent, seconds, why, id, kind, shown])
}

// The outcome of an address that has been replaced since says nothing about the present one, which is sent the message.
const SETTLE = `
  with present as materialized (
    select from alert_destinations where project_id = $1 and id = $7 and kind = $8 and shown = $9 for no key update
  ), settled as (
    update alert_messages set
      status = case when $4 then 'sent' when $5::int is null then 'failed' else 'pending' end,
      next_attempt_at = case when not $4 then db_clock() + make_interval(secs => $5::int) end,
      finished_at = case when $4 or $5::int is null then db_clock() end, scheduled_at = db_clock(), error = $6
    where project_id = $1 and id = $2 and attempts = $3 and status = 'pending' and exists (select from present)
  )
  update alert_destinations set last_error = $6,
    last_sent_at = case when $4 then db_clock() else last_sent_at end,
    failing_since = case when not $4 then coalesce(failing_since, db_clock()) end
  where project_id = $1 and id = $7 and exists (select from present)`

/** Returns a message to the queue without an attempt, because this process stops. */
export async function giveBack(db: Db, { projectId, id, attempt }: Taken): Promise<void> {
  await db.query(
    `update alert_messages set next_attempt_at = db_clock(), scheduled_at = db_clock(), attempts = attempts - 1
     where project_id = $1 and id = $2 and attempts = $3 and status = 'pending'`,
    [projectId, id, attempt],
  )
}
