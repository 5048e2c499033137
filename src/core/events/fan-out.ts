// Makes the deliveries of an event: one for each endpoint that receives its kind.
import type { Db } from '../../lib/pg/db.ts'
import type { Statement } from '../../lib/pg/types.ts'

const FAN_OUT = 500

/** Turns events into one delivery for each endpoint that receives their kind; returns whether there may be more. */
export async function fanOut(db: Db): Promise<boolean> {
  const done = await db.query(FAN_OUT_EVENTS, [FAN_OUT])
  return done.length === FAN_OUT
}

// A test event is delivered to the endpoint under test, even if that does not receive its kind.
const FAN_OUT_EVENTS: Statement = {
  name: 'fan out events',
  text: `
  with due as materialized (
    select project_id, id, type, object_id from events where pending
    order by created_at limit $1 for no key update skip locked
  ), made as (
    insert into webhook_deliveries (project_id, event_id, endpoint_id, created_at, next_attempt_at)
    select due.project_id, due.id, e.id, now.at, now.at
    from (select db_clock() as at) now, due join webhook_endpoints e on e.project_id = due.project_id and e.enabled and
      case when due.type = 'endpoint.test' then e.id::text = due.object_id
           else e.kinds = '[]' or e.kinds ? due.type end
    on conflict do nothing
  )
  update events e set pending = false from due where e.project_id = due.project_id and e.id = due.id returning 1`,
}
