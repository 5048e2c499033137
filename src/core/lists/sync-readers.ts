// Records the readers of syncs: the last window of each key and list, written in batches every few seconds.
import type { Logger } from 'pino'
import type { Db } from '../../lib/pg/db.ts'
import { isUnavailable } from '../../lib/pg/errors.ts'

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

const PAUSE_MS = 3000
// Bounds the memory. Further readers are recorded after the next write.
const MAX_READERS = 10_000

interface Noted extends SyncedPage {
  project_id: string
  key_id: string
}

export function openSyncReaders({ db, log }: { db: Db; log: Logger }): SyncReaders {
  let noted = new Map<string, Noted>()
  let timer: NodeJS.Timeout | undefined

  async function write(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    if (noted.size === 0) return
    const rows = [...noted.values()]
    noted = new Map()
    await db.query(WRITE, [JSON.stringify(rows)]).catch((error) => {
      if (!isUnavailable(error)) log.error({ err: error }, 'Recording the readers of a sync failed.')
    })
  }

  return {
    note(project_id, key_id, { list, windowTo, rows }) {
      const place = `${key_id} ${list}`
      const before = noted.get(place)
      if (!before && noted.size >= MAX_READERS) return
      noted.set(place, { project_id, key_id, list, windowTo, rows: rows + (before?.rows ?? 0) })
      timer ??= setTimeout(() => void write(), PAUSE_MS).unref()
    },
    close: write,
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
