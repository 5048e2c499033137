// Writes an event about lost commits for every project with a webhook endpoint.
import type { EventType } from '../../core/events/catalogue.ts'
import type { Db } from '../../lib/pg/db.ts'

const TYPE: EventType = 'project.commits_lost'

/** Writes the events of all losses without events, and marks these losses in the same statement. */
export async function announceLosses(db: Db): Promise<void> {
  await db.query(ANNOUNCE, [TYPE])
}

const instant = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

// Of two processes the second waits for the locked row and then finds it marked.
const ANNOUNCE = `
  with lost as (
    update failovers set announced_at = db_clock() where loss <> 'none' and announced_at is null
    returning generation, loss, lost_from, noticed_at)
  insert into events (project_id, id, type, object_id, sequence, created_at, data, pending)
  select w.project_id, gen_random_uuid(), $1, w.project_id,
    (select coalesce(max(e.sequence), 0) from events e where e.project_id = w.project_id and e.object_id = w.project_id)
      + row_number() over (partition by w.project_id order by l.generation),
    db_clock(), json_build_object('id', w.project_id, 'lost_from', ${instant('l.lost_from')},
      'noticed_at', ${instant('l.noticed_at')}, 'certain', l.loss = 'certain'), true
  from (select distinct project_id from webhook_endpoints where removed_at is null) w cross join lost l`
