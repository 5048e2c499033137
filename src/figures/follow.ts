// Keeps the figures up to date: computes the days that were marked, on one process at a time for each project.
import type { Logger } from 'pino'
import type { Clock } from '../lib/clock.ts'
import type { Db } from '../lib/pg/db.ts'
import { sqlState } from '../lib/pg/errors.ts'
import { endWhenStalled } from '../lib/pg/stalled.ts'
import type { Query } from '../lib/pg/types.ts'
import { repeat } from '../lib/repeat.ts'
import { readHorizon } from '../lists/horizon.ts'
import { compute } from './compute.ts'
import { families } from './families.ts'
import { beginPass, markAll, markedProjects, type Pass, spreadMark, takeMarks } from './marks.ts'
import { beforeWriters, markReports, type Writers } from './reports.ts'

const SHORTEST_PAUSE_MS = 2_000
// A day is computed from all of its records each time. Without longer pauses, computing the day that changes all the time
// would take more of the database than the charges that change it: a pass of a second takes a fortieth of the time.
const PAUSES_FOR_PASS = 49
const LONGEST_PAUSE_MS = 40_000
// A change that comes just after a pass has begun waits for the rest of it, a pause and the next pass. Together they are less than
// a minute as long as a pass takes at most 27 seconds.
const OLDEST_MS = 56_000
// Beside those of the migrations (7482) to the import (7486) and those after it.
const LOCK_CLASS = 7493
// The numbers of projects begin at 1.
const REPORTS = 0
// A long day of a large project takes a second; several days share the reading of what lies between them.
const MOST_SECONDS = 600

interface Context {
  db: Db
  clock: Clock
  log: Logger
}

/** Starts to compute the figures of all projects; returns the function that stops it. */
export function followFigures({ db, clock, log }: Context): () => Promise<void> {
  const options = { pauseMs: SHORTEST_PAUSE_MS, failure: 'Computing figures failed.' }
  return repeat({ clock, log }, options, async (signal) => {
    const begunMs = clock.monotonicMs()
    await followAll(db, signal)
    return pauseMs(clock.monotonicMs() - begunMs)
  })
}

const pauseMs = (passMs: number) =>
  Math.max(SHORTEST_PAUSE_MS, Math.min(LONGEST_PAUSE_MS, passMs * PAUSES_FOR_PASS, OLDEST_MS - 2 * passMs))

/** Brings the figures of all projects up to date, except those that another process computes at the moment. */
export async function followAll(db: Db, signal?: AbortSignal): Promise<void> {
  const writers = await followReports(db)
  for (const projectId of await markedProjects(db.query)) {
    if (signal?.aborted) return
    await computeMarked(db, projectId, { ifTaken: 'leave', writers, signal })
  }
}

/** Brings the figures of a project up to date. */
export async function followProject(db: Db, projectId: string): Promise<void> {
  const writers = await followReports(db)
  await computeMarked(db, projectId, { ifTaken: 'leave', writers })
}

/** Charges and refunds mark their days, on one process at a time. */
function followReports(db: Db): Promise<Writers> {
  return db.tx(async (query) => {
    await query(`set local statement_timeout = '${MOST_SECONDS}s'`)
    await endWhenStalled(query)
    await query(`select pg_advisory_xact_lock(${LOCK_CLASS}, ${REPORTS})`)
    return markReports(query)
  })
}

interface How {
  ifTaken: IfTaken
  /** The transactions that were writing when charges and refunds last marked their days. */
  writers: Writers
  signal?: AbortSignal | undefined
}

/** Computes the days that are marked, each once: what is marked again meanwhile is left to the next pass. */
async function computeMarked(db: Db, projectId: string, { ifTaken, writers, signal }: How): Promise<void> {
  const horizon = await readHorizon(db, projectId)
  const begun = await alone(db, projectId, ifTaken, async (query) => {
    await spreadMark(query, projectId)
    return true
  })
  if (!begun) return
  const pass = beginPass()
  while (!signal?.aborted) {
    const result = await computeNext(db, projectId, ifTaken, pass)
    if (result === 'taken') return
    if (result === 'computed') continue
    await db.query(PROGRESS, [projectId, horizon, writers])
    return
  }
}

// Imports that committed before the horizon had marked their days when the pass began; charges, when they were followed.
const PROGRESS = `
  insert into figure_progress as f (project_id, horizon)
  select id, least($2, ${beforeWriters('$3', '= p.number')}) from projects p where id = $1
  on conflict (project_id) do update set horizon = greatest(f.horizon, excluded.horizon), updated_at = db_clock()`

type IfTaken = 'leave' | 'wait'

/** Computes the next run of marked days; `taken`: another process computes figures of the project. */
async function computeNext(
  db: Db,
  projectId: string,
  ifTaken: IfTaken,
  pass: Pass,
): Promise<'computed' | 'none' | 'taken'> {
  try {
    const run = await alone(db, projectId, ifTaken, async (query) => {
      const marks = await takeMarks(query, projectId, pass)
      if (!marks) return 'none'
      await compute(query, projectId, marks.family, marks.days)
      await query('update figure_progress set updated_at = db_clock() where project_id = $1', [projectId])
      return marks
    })
    if (run === undefined) return 'taken'
    if (run === 'none') return 'none'
    pass.taken.set(run.family, run.days.from)
    return 'computed'
  } catch (error) {
    // Repeated with as many days, a run that takes too long would never end. Its marks are there again.
    if (sqlState(error) !== CANCELED || pass.days === 1) throw error
    pass.days = Math.ceil(pass.days / 4)
    return 'computed'
  }
}

// query_canceled: of a statement that went beyond its limit.
const CANCELED = '57014'

/**
 * Computes all figures of a project again from its records; returns how many days have figures then. Until a day is
 * computed again, it keeps the figures it had.
 */
export async function rebuildFigures(db: Db, projectId: string): Promise<number> {
  const writers = await followReports(db)
  await alone(db, projectId, 'wait', (query) => markAll(query, projectId))
  // Another process may compute some of the days meanwhile.
  await computeMarked(db, projectId, { ifTaken: 'wait', writers })
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
  ifTaken: IfTaken,
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
