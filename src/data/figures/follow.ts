// Keeps figures up to date: of all projects in the background, or of one project at once.
import type { Logger } from 'pino'
import { isTenantGone } from '../../core/tenants/leaving.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { Refusal } from '../../lib/errors.ts'
import type { Db } from '../../lib/pg/db.ts'
import { repeat } from '../../lib/repeat.ts'
import { families } from './families.ts'
import { Follower, SHORTEST_PAUSE_MS } from './follower.ts'
import { markAll } from './marks.ts'
import { beginPass, continuePass, type Options, withLock } from './pass.ts'
import { followReports } from './reports.ts'

interface Context {
  db: Db
  clock: Clock
  log: Logger
}

/** Starts keeping the figures of all projects up to date; returns a function that stops it. */
export function followFigures({ db, clock, log }: Context): () => Promise<void> {
  const follower = new Follower(db, clock, (day, err) =>
    log.error({ ...day, err }, 'The figures of a day cannot be computed.'),
  )
  const options = { pauseMs: SHORTEST_PAUSE_MS, failure: 'Computing figures failed.' }
  return repeat({ clock, log }, options, (signal) =>
    follower.step(signal).catch((error) => {
      if (!isTenantGone(error)) throw error
      log.info({ work: 'figures' }, 'Work ended because its organization has been moved to another shard.')
      return SHORTEST_PAUSE_MS
    }),
  )
}

/** Brings the figures of all projects up to date, except those that another process is computing. */
export async function followAll(db: Db, signal?: AbortSignal): Promise<void> {
  const follower = new Follower(db, systemClock)
  await follower.scan(signal)
  while (follower.isBehind && !signal?.aborted) await follower.takeTurn(signal)
}

/** Brings the figures of a project up to date. */
export async function followProject(db: Db, projectId: string): Promise<void> {
  await computeMarked(db, projectId, { ifLocked: 'skip', writers: await followReports(db) })
}

async function computeMarked(db: Db, projectId: string, options: Options): Promise<void> {
  const pass = await beginPass(db, projectId, options)
  if (pass) await continuePass(db, pass, () => true)
}

/**
 * Recomputes all figures of a project from its records; returns the number of days with figures. A day that cannot be computed is
 * in `failedDays`. Each day keeps its old figures until it is recomputed. Throws a `Refusal` while the process rebuilds them already:
 * each call marks all days again, and those who wait hold connections of the pool.
 */
export async function rebuildFigures(db: Db, projectId: string): Promise<number> {
  const projects = rebuilding.get(db) ?? new Set()
  rebuilding.set(db, projects)
  if (projects.has(projectId)) throw new Refusal(`The figures of project "${projectId}" are being rebuilt already.`)
  projects.add(projectId)
  try {
    return await rebuild(db, projectId)
  } finally {
    projects.delete(projectId)
  }
}

/** The projects that are being rebuilt, by database. */
const rebuilding = new WeakMap<Db, Set<string>>()

async function rebuild(db: Db, projectId: string): Promise<number> {
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
