// Deletes attempts and finished deliveries after 30 days; the events stay, and can be sent again.
import type { Logger } from 'pino'
import type { Clock } from '../lib/clock.ts'
import type { Db } from '../lib/pg/db.ts'
import { repeat } from '../lib/repeat.ts'

const KEPT = '30 days'
const PAUSE_MS = 10 * 60_000
// Small enough not to delay other transactions, with a short pause between two batches.
const BATCH = 2000
const BATCH_PAUSE_MS = 200

/** Deletes old attempts now and every ten minutes; returns the function that stops it. */
export function deleteOldAttempts({ db, clock, log }: { db: Db; clock: Clock; log: Logger }): () => Promise<void> {
  return repeat({ clock, log }, { pauseMs: PAUSE_MS, failure: 'Deleting old webhook attempts failed.' }, async () =>
    (await deleteSome(db)) ? BATCH_PAUSE_MS : PAUSE_MS,
  )
}

/** Deletes a batch of each; returns whether there may be more. */
export async function deleteSome(db: Db): Promise<boolean> {
  const attempts = await db.query(DELETE_ATTEMPTS, [KEPT, BATCH])
  const deliveries = await db.query(DELETE_DELIVERIES, [KEPT, BATCH])
  return attempts.length === BATCH || deliveries.length === BATCH
}

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
