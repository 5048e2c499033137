// Deletes attempts and finished deliveries after 30 days, and all deliveries of removed endpoints. The events stay, and can be sent
// again.
import type { Logger } from 'pino'
import type { Clock } from '../../lib/clock.ts'
import type { Db } from '../../lib/pg/db.ts'
import { repeat } from '../../lib/repeat.ts'

const KEPT = '30 days'
// While deliveries of removed endpoints are due, the queue is slower to look at: `MANY_DUE` in `queue.ts`.
const PAUSE_MS = 60_000
// Small enough not to delay other transactions, with a short pause between two batches.
const BATCH = 2000
const BATCH_PAUSE_MS = 200

/** Deletes what is no longer needed now and every minute; returns the function that stops it. */
export function deleteOldDeliveries({ db, clock, log }: { db: Db; clock: Clock; log: Logger }): () => Promise<void> {
  return repeat({ clock, log }, { pauseMs: PAUSE_MS, failure: 'Deleting old deliveries failed.' }, async () =>
    (await deleteSome(db)) ? BATCH_PAUSE_MS : PAUSE_MS,
  )
}

/** Deletes a batch of each; returns whether there may be more. Any process may continue at any point. */
export async function deleteSome(db: Db): Promise<boolean> {
  const attempts = await db.query(DELETE_ATTEMPTS, [KEPT, BATCH])
  const deliveries = await db.query(DELETE_DELIVERIES, [KEPT, BATCH])
  const isMoreRemoved = await deleteRemoved(db)
  return attempts.length === BATCH || deliveries.length === BATCH || isMoreRemoved
}

/** Deletes a batch of the deliveries of a removed endpoint, or else the endpoint itself; returns whether there was one. */
async function deleteRemoved(db: Db): Promise<boolean> {
  const deliveries = await db.query(DELETE_OF_REMOVED, [BATCH])
  if (deliveries.length > 0) return true
  return db.tx(async (query) => {
    // A delivery that is being created locks its endpoint. Once this has the lock, a later statement sees all deliveries.
    const [endpoint] = await query(LOCK_REMOVED)
    if (!endpoint) return false
    await query(DELETE_ENDPOINT, [endpoint.project_id!, endpoint.id!])
    return true
  })
}

const DELETE_OF_REMOVED = `
  delete from webhook_deliveries where (project_id, event_id, endpoint_id) in (
    select d.project_id, d.event_id, d.endpoint_id
    from (select project_id, id from webhook_endpoints where removed_at is not null order by removed_at limit 1) e
    cross join lateral (
      select w.project_id, w.event_id, w.endpoint_id from webhook_deliveries w
      where w.project_id = e.project_id and w.endpoint_id = e.id limit $1 for update skip locked) d)
  returning 1`

const LOCK_REMOVED = `
  select project_id, id from webhook_endpoints where removed_at is not null order by removed_at limit 1
  for update skip locked`

const DELETE_ENDPOINT = `
  delete from webhook_endpoints e where e.project_id = $1 and e.id = $2
    and not exists (select from webhook_deliveries d where d.project_id = e.project_id and d.endpoint_id = e.id)`

const DELETE_ATTEMPTS = `
  delete from webhook_attempts where (project_id, event_id, endpoint_id, number) in (
    select project_id, event_id, endpoint_id, number from webhook_attempts
    where attempted_at < (select db_clock()) - $1::interval order by attempted_at limit $2 for update skip locked)
  returning 1`

const DELETE_DELIVERIES = `
  delete from webhook_deliveries where (project_id, event_id, endpoint_id) in (
    select project_id, event_id, endpoint_id from webhook_deliveries
    where status <> 'pending' and finished_at < (select db_clock()) - $1::interval
    order by finished_at limit $2 for update skip locked)
  returning 1`
