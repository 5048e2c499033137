// Gives sessions that were stored before there were dimensions the dimensions that follow from their other fields, in the background.
import type { Logger } from 'pino'
import { columnOf, DIMENSIONS, visitOf } from '../../core/records/visit.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Db } from '../../lib/pg/db.ts'
import { repeat } from '../../lib/repeat.ts'

const PAUSE_MS = 60_000
const BATCH = 1000

/** Starts to describe sessions, in any number of processes; returns a function that stops it. */
export function describeSessions({ db, clock, log }: { db: Db; clock: Clock; log: Logger }): () => Promise<void> {
  const options = { pauseMs: PAUSE_MS, failure: 'Describing older sessions failed.' }
  return repeat({ clock, log }, options, async (signal) => {
    while (!signal.aborted && (await describeSome(db)));
    return PAUSE_MS
  })
}

/** Describes some sessions of one project. Returns false if there are none left, or if other processes are describing the rest. */
export function describeSome(db: Db): Promise<boolean> {
  return db.tx(async (query) => {
    const [next] = await query(NEXT)
    if (!next) return false
    const { project_id: project, after } = next as { project_id: string; after: string }
    const rows = await query(SESSIONS, [project, after, BATCH])
    if (rows.length === 0) {
      await query('delete from sessions_to_describe where project_id = $1', [project])
      await query("insert into figure_marks (project_id, family, day) values ($1, 'all', current_date)", [project])
      return true
    }
    const found = rows.map(({ id, query_params, origin, user_agent }) => ({
      id,
      query_params,
      origin,
      user_agent,
      ...visitOf({ query_params: query_params!, origin: origin!, user_agent: user_agent! }),
    }))
    await query(DESCRIBE, [project, JSON.stringify(found)])
    await query('update sessions_to_describe set after = $2 where project_id = $1', [project, rows.at(-1)!.id!])
    return true
  })
}

const NEXT = 'select project_id, after from sessions_to_describe order by project_id limit 1 for update skip locked'

const SESSIONS = `
  select id, query_params::text as query_params, origin, user_agent from sessions
  where project_id = $1 and id > $2 order by id limit $3`

const INPUTS = ['query_params', 'origin', 'user_agent']

// No stamp: what the API shows stays the same. A session that is written during it has its dimensions already.
const DESCRIBE = `
  update sessions s set ${DIMENSIONS.map((name) => `${columnOf(name)} = coalesce(s.${columnOf(name)}, d.${name})`).join(', ')}
  from json_to_recordset($2::json) d (id text, ${[...INPUTS, ...DIMENSIONS].map((name) => `${name} text`).join(', ')})
  where s.project_id = $1 and s.id = d.id collate "C"
    and row(s.query_params::text, s.origin, s.user_agent) is not distinct from row(d.query_params, d.origin, d.user_agent)
    and num_nonnulls(${DIMENSIONS.map((name) => `d.${name}`).join(', ')}) > 0`
