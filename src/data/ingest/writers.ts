// Records what each key writes: how many records of each kind a day, and how many were rejected for which reason.
import type { Logger } from 'pino'
import { KINDS } from '../../core/records/records.ts'
import type { Db } from '../../lib/pg/db.ts'
import { openNotes } from '../../lib/pg/notes.ts'

/** Of one call: how many records, by kind and the code of their reject; '' are those that were accepted. */
export class Written {
  readonly #counts = new Map<string, { record: string; code: string; n: number }>()

  add(record: string, code = '', n = 1): void {
    const kind = NAMES.has(record) ? record : ''
    const place = `${kind} ${code}`
    const before = this.#counts.get(place)
    if (before) before.n += n
    else this.#counts.set(place, { record: kind, code, n })
  }

  get counts(): { record: string; code: string; n: number }[] {
    return [...this.#counts.values()].filter(({ n }) => n > 0)
  }
}

export interface Writers {
  note(projectId: string, keyId: string, written: Written): void
  /** Writes what was recorded. */
  close(): Promise<void>
}

const NAMES = new Set(KINDS.map(({ name }) => name))

export function openWriters(app: { db: Db; log: Logger }): Writers {
  const notes = openNotes<Noted>(app, {
    statement: WRITE,
    add: (before, noted) => ({ ...noted, n: noted.n + before.n }),
    failure: 'Recording the writers of records failed.',
  })
  return {
    note(project_id, key_id, { counts }) {
      for (const one of counts) notes.note(`${key_id} ${one.record} ${one.code}`, { project_id, key_id, ...one })
    },
    close: notes.close,
  }
}

interface Noted {
  project_id: string
  key_id: string
  record: string
  code: string
  n: number
}

// Of a key that writes, days before the last 30 are deleted.
const WRITE = `
  with given as materialized (
    select n.*, (db_clock() at time zone 'UTC')::date as day
    from json_to_recordset($1) as n (project_id text, key_id uuid, record text, code text, n bigint)
  ), written as (
    insert into record_writers as w (project_id, key_id, day, record, code, n, last_seen_at)
    select project_id, key_id, day, record, code, n, db_clock() from given order by 1, 2, 3, 4, 5
    on conflict (project_id, key_id, day, record, code) do update
      set n = w.n + excluded.n, last_seen_at = excluded.last_seen_at
  )
  delete from record_writers w using (select distinct project_id, key_id, day from given) g
  where w.project_id = g.project_id and w.key_id = g.key_id and w.day < g.day - 30`
