// Records the readers of syncs: the last window of each key and list, written in batches every few seconds.
import type { Logger } from 'pino'
import type { Db } from '../../lib/pg/db.ts'
import { openNotes } from '../../lib/pg/notes.ts'

/** A page of a sync that was served. */
export interface SyncedPage {
  list: string
  /** The end of the window, or the horizon if the request had none. */
  windowTo: string
  rows: number
}

export interface SyncReaders {
  note(projectId: string, keyId: string, page: SyncedPage): void
  /** Writes the recorded pages. */
  close(): Promise<void>
}

interface Noted extends SyncedPage {
  project_id: string
  key_id: string
}

export function openSyncReaders(app: { db: Db; log: Logger }): SyncReaders {
  const notes = openNotes<Noted>(app, {
    statement: WRITE,
    add: (before, noted) => ({ ...noted, rows: noted.rows + before.rows }),
    failure: 'Recording the readers of a sync failed.',
  })
  return {
    note: (project_id, key_id, page) => notes.note(`${key_id} ${page.list}`, { project_id, key_id, ...page }),
    close: notes.close,
  }
}

// Ordered by key, so that two processes cannot deadlock.
const WRITE = `
  insert into sync_readers as r (project_id, key_id, list, last_seen_at, window_to, rows_of_day)
  select project_id, key_id, list, db_clock(), "windowTo", rows
  from json_to_recordset($1) as n (project_id text, key_id uuid, list text, "windowTo" timestamptz, rows bigint)
  order by 1, 2, 3
  on conflict (project_id, key_id, list) do update set last_seen_at = excluded.last_seen_at,
    window_to = excluded.window_to,
    rows_of_day = excluded.rows_of_day + case
      when (r.last_seen_at at time zone 'UTC')::date = (excluded.last_seen_at at time zone 'UTC')::date
      then r.rows_of_day else 0 end`
