// Keeps the figures behind the records: computes the days that were marked, on one process at a time for each project.
import type { Logger } from 'pino'
import type { Clock } from '../lib/clock.ts'
import type { Db } from '../lib/pg/db.ts'
import { isUnavailable, sqlState } from '../lib/pg/errors.ts'
import type { Query } from '../lib/pg/types.ts'
import { readHorizon } from '../lists/horizon.ts'
import { compute } from './compute.ts'
import { families } from './families.ts'
import { LONGEST_RUN, markNews, takeMarks } from './marks.ts'
import { LAST_CHANGE } from './read.ts'

const SHORTEST_PAUSE_MS = 2_000
// A day is computed from all of its records each time. Without longer pauses, computing the day that changes all the time
// would take more of the database than the charges that change it: a pass takes a fiftieth of the time, and figures are
// still less than a minute old as long as a pass takes some seconds.
const PAUSES_FOR_PASS = 49
const LONGEST_PAUSE_MS = 40_000
// Beside those of the migrations (7482) to the import (7486) and those after it.
const LOCK_CLASS = 7493
// A long day of a large project takes a second; several days share the reading of what lies between them.
const MOST_SECONDS = 600

interface Context {
  db: Db
  clock: Clock
  log: Logger
}

/** Starts to follow all projects; returns what stops it. */
export function followFigures({ db, clock, log }: Context): () => Promise<void> {
  const stopping = new AbortController()
  const work = async () => {
    while (!stopping.signal.aborted) {
      const begunMs = clock.monotonicMs()
      await followAll(db, stopping.signal).catch((error) => {
        if (!isUnavailable(error)) log.error({ err: error }, 'Computing figures failed.')
      })
      await clock.sleep(pauseMs(clock.monotonicMs() - begunMs), stopping.signal)
    }
  }
  const working = work()
  return async () => {
    stopping.abort()
    await working
  }
}

const pauseMs = (passMs: number) => Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, passMs * PAUSES_FOR_PASS))

/** Brings the figures of all projects up to their horizons; another process may be at some of them, which are left out. */
export async function followAll(db: Db, signal?: AbortSignal): Promise<void> {
  const projects = await db.query(CHANGED)
  for (const { id } of projects) {
    if (signal?.aborted) return
    await followProject(db, id!, signal)
  }
}

/** Brings the figures of a project up to its horizon. */
export async function followProject(db: Db, projectId: string, signal?: AbortSignal): Promise<void> {
  const horizon = await readHorizon(db, projectId)
  await alone(db, projectId, 'leave', (query) => markNews(query, projectId, horizon))
  const run = { days: LONGEST_RUN }
  while (!signal?.aborted) if (!(await computeNext(db, projectId, 'leave', run))) return
}

/** Computes one run of marked days; false when there is none, or another process computes figures of the project. */
async function computeNext(
  db: Db,
  projectId: string,
  ifTaken: 'leave' | 'wait',
  run: { days: number },
): Promise<boolean> {
  try {
    const done = await alone(db, projectId, ifTaken, async (query) => {
      const marks = await takeMarks(query, projectId, run.days)
      if (marks) await compute(query, projectId, marks.family, marks.days)
      return marks !== undefined
    })
    return done ?? false
  } catch (error) {
    // Repeated with as many days, a run that takes too long would never end. Its marks are there again.
    if (sqlState(error) !== CANCELED || run.days === 1) throw error
    run.days = Math.ceil(run.days / 4)
    return true
  }
}

// query_canceled: of a statement that went beyond its limit.
const CANCELED = '57014'

/**
 * Forgets what was followed of a project and computes all of its figures again from the records; returns how many days
 * have figures then. Until a day is computed again, it keeps the figures it had.
 */
export async function rebuildFigures(db: Db, projectId: string): Promise<number> {
  const horizon = await readHorizon(db, projectId)
  await db.tx(async (query) => {
    // Marking every day reads the times of all records.
    await query(`set local statement_timeout = '${MOST_SECONDS}s'`)
    await query('select pg_advisory_xact_lock($1, number) from projects where id = $2', [LOCK_CLASS, projectId])
    await query('delete from figure_progress where project_id = $1', [projectId])
    await markNews(query, projectId, horizon)
  })
  // Another process may compute some of the days meanwhile.
  const run = { days: LONGEST_RUN }
  while (await computeNext(db, projectId, 'wait', run)) {}
  const [row] = await db.query(DAYS, [projectId])
  return Number(row!.days)
}

const DAYS = `
  select count(distinct day) as days from (${families
    .map(({ table }) => `select day from ${table} where project_id = $1 and split = ''`)
    .join(' union all ')}) figures`

/** Runs `work` in a transaction while no other process computes figures of the project. */
function alone<T>(
  db: Db,
  projectId: string,
  ifTaken: 'leave' | 'wait',
  work: (query: Query) => Promise<T>,
): Promise<T | undefined> {
  return db.tx(async (query) => {
    await query(`set local statement_timeout = '${MOST_SECONDS}s'`)
    const lock = ifTaken === 'wait' ? 'pg_advisory_xact_lock' : 'pg_try_advisory_xact_lock'
    const [locked] = await query(`select ${lock}($1, number)::text as mine from projects where id = $2`, [
      LOCK_CLASS,
      projectId,
    ])
    return locked?.mine === 'false' ? undefined : work(query)
  })
}

// A look at the ends of four indexes a project: an idle project costs nothing more.
const CHANGED = `
  select p.id from projects p left join figure_progress f on f.project_id = p.id
  where (f.project_id is null and (
      exists (select from profiles r where r.project_id = p.id)
      or exists (select from report_transactions r where r.organization_id = p.organization_id)))
    or exists (select from figure_marks m where m.project_id = p.id)
    or ${LAST_CHANGE} >= f.horizon
    or (select r.trx_created_at from report_transactions r where r.organization_id = p.organization_id
        order by r.trx_created_at desc limit 1) > f.reported
  order by p.id`
