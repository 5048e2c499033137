// Records when each secret key was last used, to the minute.
import type { Logger } from 'pino'
import type { Db } from '../../lib/pg/db.ts'
import { openNotes } from '../../lib/pg/notes.ts'
import type { KeyHolder } from './tenants.ts'

export interface KeyUses {
  note(holder: KeyHolder): void
  /** Writes the recorded uses. */
  close(): Promise<void>
}

const MINUTE_MS = 60_000
// Bounds the memory.
const MOST = 10_000

export function openKeyUses(app: { db: Db; log: Logger }): KeyUses {
  const notes = openNotes(app, {
    statement: WRITE,
    add: (before) => before,
    failure: 'Recording the use of keys failed.',
  })
  /** When this process last recorded a use of each key. */
  const recorded = new Map<string, number>()
  return {
    note({ key_id, organization_id, project_id }) {
      const nowMs = performance.now()
      if (nowMs - (recorded.get(key_id) ?? -MINUTE_MS) < MINUTE_MS) return
      if (recorded.size >= MOST) recorded.clear()
      recorded.set(key_id, nowMs)
      notes.note(key_id, { key_id, organization_id, project_id })
    },
    close: notes.close,
  }
}

const WRITE = `
  insert into key_uses as u (organization_id, project_id, key_id, last_used_at)
  select organization_id, project_id, key_id, db_clock()
  from json_to_recordset($1) as n (organization_id text, project_id text, key_id uuid) order by 1, 3
  on conflict (organization_id, key_id) do update set last_used_at = excluded.last_used_at
  where u.last_used_at < excluded.last_used_at - interval '1 minute'`
