// Keeps the figures up to date: recomputes marked days, in one process at a time for each project.
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
import { beginPass, expandMark, markAll, markedProjects, type Pass, takeMarks } from './marks.ts'
import { beforeWriters, markReports, type Writers } from './reports.ts'

const SHORTEST_PAUSE_MS = 2_000
// Each time, a day is computed from all of its records. With a fixed pause, computing today would take more of the database's
// CPU than the charges that change it. With this factor passes take a fiftieth of the time, or a fortieth if one takes a second.
const PAUSES_FOR_PASS = 49
const LONGEST_PAUSE_MS = 40_000
// A change just after the beginning of a pass waits for the rest of that pass, a pause, and the next pass. That is less than a
// minute as long as a pass takes at most 27 seconds.
const OLDEST_MS = 56_000
// The class of this advisory lock. Lower numbers are taken, from the migrations (7482) to the import (7486) and others.
const LOCK_CLASS = 7493
// The lock for marking the days of charges and refunds. No project has this number: they begin at 1.
const REPORTS = 0
// A busy day of a large project takes a second.
const MAX_SECONDS = 600

interface Context {
  db: Db
  clock: Clock
  log: Logger
}

/** Starts keeping the figures of all projects up to date; returns a function that stops it. */
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

/** Brings the figures of all projects up to date, except those that another process is computing. */
export async function followAll(db: Db, signal?: AbortSignal): Promise<void> {
  const writers = await followReports(db)
  for (const projectId of await markedProjects(db.query)) {
    if (signal?.aborted) return
    await computeMarked(db, projectId, { ifLocked: 'skip', writers, signal })
  }
}

/** Brings the figures of a project up to date. */
export async function followProject(db: Db, projectId: string): Promise<void> {
  const writers = await followReports(db)
  await computeMarked(db, projectId, { ifLocked: 'skip', writers })
}

/** Marks the days of new charges and refunds, in one process at a time. */
function followReports(db: Db): Promise<Writers> {
  return db.tx(async (query) => {
    await query(`set local statement_timeout = '${MAX_SECONDS}s'`)
    await endWhenStalled(query)
    await query(`select pg_advisory_xact_lock(${LOCK_CLASS}, ${REPORTS})`)
    return markReports(query)
  })
}

interface Options {
  ifLocked: IfLocked
  /** The transactions that were writing when the days of charges and refunds were last marked. */
  writers: Writers
  signal?: AbortSignal | undefined
}

/** Computes the marked days, each at most once: a day that is marked again meanwhile is left to the next pass. */
async function computeMarked(db: Db, projectId: string, { ifLocked, writers, signal }: Options): Promise<void> {
  const horizon = await readHorizon(db, projectId)
  const begun = await withLock(db, projectId, ifLocked, async (query) => {
    await expandMark(query, projectId)
    return true
  })
  if (!begun) return
  const pass = beginPass()
  while (!signal?.aborted) {
    const result = await computeNext(db, projectId, ifLocked, pass)
    if (result === 'locked') return
    if (result === 'computed') continue
    await db.query(PROGRESS, [projectId, horizon, writers])
    return
  }
}

// The days of all imports before the horizon were marked when the pass began, and those of all charges before `writers`.
const PROGRESS = `
  insert into figure_progress as f (project_id, horizon)
  select id, least($2, ${beforeWriters('$3', '= p.number')}) from projects p where id = $1
  on conflict (project_id) do update set horizon = greatest(f.horizon, excluded.horizon), updated_at = db_clock()`

/** What to do while another process computes figures of the project. */
type IfLocked = 'skip' | 'wait'

/** Computes the next run of marked days; `locked`: another process is computing figures of the project. */
async function computeNext(
  db: Db,
  projectId: string,
  ifLocked: IfLocked,
  pass: Pass,
): Promise<'computed' | 'none' | 'locked'> {
  try {
    const run = await withLock(db, projectId, ifLocked, async (query) => {
      const marks = await takeMarks(query, projectId, pass)
      if (!marks) return 'none'
      await compute(query, projectId, marks.family, marks.days)
      await query('update figure_progress set updated_at = db_clock() where project_id = $1', [projectId])
      return marks
    })
    if (run === undefined) return 'locked'
    if (run === 'none') return 'none'
    pass.taken.set(run.family, run.days.from)
    return 'computed'
  } catch (error) {
    // The transaction was rolled back, so the marks are still there. The same run would take too long again: try fewer days.
    if (sqlState(error) !== CANCELED || pass.days === 1) throw error
    pass.days = Math.ceil(pass.days / 4)
    return 'computed'
  }
}

// query_canceled: a statement took longer than its limit.
const CANCELED = '57014'

/**
 * Recomputes all figures of a project from its records; returns the number of days with figures. Each day keeps its old figures
 * until it is recomputed.
 */
export async function rebuildFigures(db: Db, projectId: string): Promise<number> {
  const writers = await followReports(db)
  await withLock(db, projectId, 'wait', (query) => markAll(query, projectId))
  // Another process may compute some of the days between these two transactions.
  await computeMarked(db, projectId, { ifLocked: 'wait', writers })
  const [row] = await db.query(DAYS, [projectId])
  return Number(row!.days)
}

const DAYS = `
  select count(distinct day) as days from (${families
    .map(({ table }) => `select day from ${table} where project_id = $1 and split = ''`)
    .join(' union all ')}) figures`

/** Runs `work` in a transaction that holds the project's lock on figures. Returns undefined if it is skipped. */
function withLock<T>(
  db: Db,
  projectId: string,
  ifLocked: IfLocked,
  work: (query: Query) => Promise<T>,
): Promise<T | undefined> {
  return db.tx(async (query) => {
    await query(`set local statement_timeout = '${MAX_SECONDS}s'`)
    const lock = ifLocked === 'wait' ? 'pg_advisory_xact_lock' : 'pg_try_advisory_xact_lock'
    const [locked] = await query(`select ${lock}($1, number)::text as mine from projects where id = $2`, [
      LOCK_CLASS,
      projectId,
    ])
    return locked?.mine === 'false' ? undefined : work(query)
  })
}
