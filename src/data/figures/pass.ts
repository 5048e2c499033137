// A pass over the marked days of a project: computes each of them once, newest first, in slices of time.

import { readHorizon } from '../../core/lists/horizon.ts'
import { addDays } from '../../lib/days.ts'
import type { Db } from '../../lib/pg/db.ts'
import { sqlState } from '../../lib/pg/errors.ts'
import type { Query } from '../../lib/pg/types.ts'
import { compute } from './compute.ts'
import { addFailure, isAboutDays, type OnFailedDay, removeFailures } from './failures.ts'
import { LOCK_CLASS, limitFigures } from './lock.ts'
import { beginRuns, expandMark, LONGEST_RUN, type Runs, takeMarks } from './marks.ts'
import { noteIfOlder } from './older.ts'
import { beforeWriters, type Writers } from './reports.ts'
import { completeSettings, settingsOf } from './settings.ts'

/** What to do while another process computes figures of the project. */
type IfLocked = 'skip' | 'wait'

export interface Options {
  ifLocked: IfLocked
  onFailedDay?: OnFailedDay | undefined
  /** The transactions that were writing when the days of charges and refunds were last marked. */
  writers: Writers
}

export interface Pass extends Options {
  projectId: string
  /** The project's horizon at the beginning. */
  horizon: string
  /** That of the settings of the figures. */
  version: number
  runs: Runs
}

/** Begins a pass; undefined if it is skipped because another process is computing figures of the project. */
export async function beginPass(db: Db, projectId: string, options: Options): Promise<Pass | undefined> {
  const horizon = await readHorizon(db, projectId)
  const settings = await withLock(db, projectId, options.ifLocked, async (query) => {
    await expandMark(query, projectId)
    return settingsOf(query, projectId)
  })
  return settings && { ...options, projectId, horizon, version: settings.version, runs: beginRuns() }
}

/**
 * Computes marked days while `shouldContinue`, at least one run of them. A day that is marked again during the pass is left to the next pass.
 * `locked`: another process is computing figures of the project, and completes them.
 */
export async function continuePass(
  db: Db,
  pass: Pass,
  shouldContinue: () => boolean,
): Promise<'complete' | 'incomplete' | 'locked'> {
  do {
    const result = await computeNext(db, pass)
    if (result === 'locked') return 'locked'
    if (result === 'computed') continue
    await db.query(PROGRESS, [pass.projectId, pass.horizon, pass.writers])
    await completeSettings(db.query, pass.projectId, pass.version)
    return 'complete'
  } while (shouldContinue())
  return 'incomplete'
}

// The days of all imports before the horizon were marked when the pass began, and those of all charges before `writers`.
const PROGRESS = `
  insert into figure_progress as f (project_id, horizon)
  select id, least($2, ${beforeWriters('$3', '= p.number')}) from projects p where id = $1
  on conflict (project_id) do update set horizon = greatest(f.horizon, excluded.horizon), updated_at = db_clock()`

// A run of days should take about this long: long enough to cost little more than its days, short enough for the other projects.
const SHORT_RUN_MS = 250
const LONG_RUN_MS = 1000

/** Computes the next run of marked days. */
async function computeNext(db: Db, pass: Pass): Promise<'computed' | 'none' | 'locked'> {
  const { projectId, ifLocked, runs } = pass
  let begunMs = 0
  let marks: Awaited<ReturnType<typeof takeMarks>>
  try {
    const run = await withLock(db, projectId, ifLocked, async (query) => {
      // Not before: a wait for the lock says nothing of the days.
      begunMs = performance.now()
      marks = await takeMarks(query, projectId, runs)
      if (!marks) return 'none'
      await compute(query, projectId, marks.family, marks.days)
      await noteIfOlder(query, projectId, marks.family, marks.days)
      await removeFailures(query, projectId, marks.family, marks.days)
      await query('update figure_progress set updated_at = db_clock() where project_id = $1', [projectId])
      return 'computed'
    })
    if (run !== 'computed') return run ?? 'locked'
    runs.taken.set(marks!.family, marks!.days.from)
  } catch (error) {
    // The transaction was rolled back, so the marks are still there. Fewer days may take less time, or be without the bad one.
    if (!marks || !isAboutDays(error)) throw error
    if (addDays(marks.days.from, 1) === marks.days.to) await leaveOut(db, pass, marks.family, marks.days.from, error)
    else resize(runs, marks.family, 1 / 4)
    return 'computed'
  }
  const tookMs = performance.now() - begunMs
  if (tookMs < SHORT_RUN_MS) resize(runs, marks!.family, 2)
  if (tookMs > LONG_RUN_MS) resize(runs, marks!.family, 1 / 4)
  return 'computed'
}

/** Changes how many days the next run of a family may have. */
function resize({ days }: Runs, family: string, by: number): void {
  days.set(family, Math.min(Math.ceil((days.get(family) ?? 1) * by), LONGEST_RUN))
}

/** Records a day that cannot be computed, and continues with the day before it. */
async function leaveOut(db: Db, { projectId, runs, onFailedDay }: Pass, family: string, day: string, error: unknown) {
  const code = sqlState(error)!
  await addFailure(db, projectId, family, day, code)
  runs.taken.set(family, day)
  onFailedDay?.({ project_id: projectId, family, day, code }, error)
}

/** Runs `work` in a transaction that holds the project's lock on figures. Returns undefined if it is skipped. */
export function withLock<T>(
  db: Db,
  projectId: string,
  ifLocked: IfLocked,
  work: (query: Query) => Promise<T>,
): Promise<T | undefined> {
  return db.tx(async (query) => {
    await limitFigures(query)
    const lock = ifLocked === 'wait' ? 'pg_advisory_xact_lock' : 'pg_try_advisory_xact_lock'
    const [locked] = await query(`select ${lock}($1, number)::text as mine from projects where id = $2`, [
      LOCK_CLASS,
      projectId,
    ])
    return locked?.mine === 'false' ? undefined : work(query)
  })
}
