// Computes the marked days of all projects in rounds, in which no project waits for another one's many days.
import { isTenantGone } from '../../core/tenants/leaving.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Db } from '../../lib/pg/db.ts'
import { isUnavailable } from '../../lib/pg/errors.ts'
import { markDueFailures, type OnFailedDay } from './failures.ts'
import { markComputedByOlder, markedProjects } from './marks.ts'
import { isNewest } from './older.ts'
import { beginPass, continuePass, type Pass } from './pass.ts'
import { followReports, type Writers } from './reports.ts'

/** The pause after a run that failed, and the shortest one. */
export const SHORTEST_PAUSE_MS = 2_000
// Each time, a day is computed from all of its records. With a fixed pause, computing today would take more of the database's
// CPU than the charges that change it. With this factor rounds take a fiftieth of the time, or a fortieth if one takes a second.
const PAUSES_FOR_WORK = 49
const LONGEST_PAUSE_MS = 40_000
// A change just after the beginning of a round waits for the rest of that round, a pause, and the next round. That is less than a
// minute as long as a round takes at most 27 seconds.
const OLDEST_MS = 56_000
// The time that a project gets at once. Longer than the passes of nearly all projects.
const SLICE_MS = 1_000
// While a project has many days to compute, its newest ones are computed again at this interval.
const NEWEST_AGAIN_MS = OLDEST_MS / 2

/** A pass that did not end in its first slice of time. */
interface Unfinished {
  pass: Pass
  /** When the newest days of the project were last begun. */
  newestMs: number
}

/**
 * A round begins with a scan of all projects that have marks: each gets a slice of time. Those that need more get further slices
 * in turn, and all others are scanned again during it, so that their new changes do not wait. The round ends when no project
 * needs more time.
 */
export class Follower {
  private readonly db: Db
  private readonly clock: Clock
  private readonly onFailedDay: OnFailedDay | undefined
  private readonly unfinished = new Map<string, Unfinished>()
  private roundMs = 0
  private nextScanMs = Number.NEGATIVE_INFINITY

  constructor(db: Db, clock: Clock, onFailedDay?: OnFailedDay) {
    this.db = db
    this.clock = clock
    this.onFailedDay = onFailedDay
  }

  /** Does the next piece of work if one is due; returns the pause after it. */
  async step(signal: AbortSignal): Promise<number> {
    if (this.clock.monotonicMs() >= this.nextScanMs) await this.scan(signal)
    else await this.takeTurn(signal)
    return this.isBehind ? 0 : Math.max(0, this.nextScanMs - this.clock.monotonicMs())
  }

  /** Whether projects need more time in this round. */
  get isBehind(): boolean {
    return this.unfinished.size > 0
  }

  /** Computes marked days of all projects, each for a slice of time. */
  async scan(signal?: AbortSignal): Promise<void> {
    const begunMs = this.clock.monotonicMs()
    if (!this.isBehind) this.roundMs = 0
    const failures: unknown[] = []
    // The time for projects whose passes were completed.
    let completedMs = 0
    try {
      if (!(await isNewest(this.db))) return this.unfinished.clear()
      await markComputedByOlder(this.db.query)
      const writers = await followReports(this.db)
      await markDueFailures(this.db.query)
      for (const projectId of await markedProjects(this.db.query)) {
        if (signal?.aborted) return
        const beforeMs = this.clock.monotonicMs()
        // The other projects must not wait until this one can be computed.
        await this.scanProject(projectId, writers, signal).catch((error) => {
          if (isUnavailable(error)) throw error
          failures.push(error)
        })
        if (!this.unfinished.has(projectId)) completedMs += this.clock.monotonicMs() - beforeMs
      }
    } finally {
      this.addWork(begunMs)
      if (this.isBehind) this.nextScanMs = this.clock.monotonicMs() + pauseMs(completedMs)
    }
    if (failures.length > 0) throw failures.find((error) => !isTenantGone(error)) ?? failures[0]
  }

  private async scanProject(projectId: string, writers: Writers, signal?: AbortSignal): Promise<void> {
    const nowMs = this.clock.monotonicMs()
    const earlier = this.unfinished.get(projectId)
    if (earlier && nowMs < earlier.newestMs + NEWEST_AGAIN_MS) return
    const pass = await beginPass(this.db, projectId, { ifLocked: 'skip', writers, onFailedDay: this.onFailedDay })
    const result = pass && (await continuePass(this.db, pass, this.slice(signal)))
    if (pass && result === 'incomplete')
      this.unfinished.set(projectId, { pass: earlier?.pass ?? pass, newestMs: nowMs })
    else this.unfinished.delete(projectId)
  }

  /** Continues an unfinished pass for a slice of time; it goes to the end of the queue. */
  async takeTurn(signal?: AbortSignal): Promise<void> {
    const [next] = this.unfinished
    if (!next) return
    const [projectId, one] = next
    const begunMs = this.clock.monotonicMs()
    // A pass that fails begins again with the next scan.
    this.unfinished.delete(projectId)
    try {
      if ((await continuePass(this.db, one.pass, this.slice(signal))) === 'incomplete')
        this.unfinished.set(projectId, one)
    } finally {
      this.addWork(begunMs)
    }
  }

  private slice(signal?: AbortSignal): () => boolean {
    const endMs = this.clock.monotonicMs() + SLICE_MS
    return () => !signal?.aborted && this.clock.monotonicMs() < endMs
  }

  /** The pause after a round depends on all of its work. */
  private addWork(begunMs: number): void {
    const nowMs = this.clock.monotonicMs()
    this.roundMs += nowMs - begunMs
    if (!this.isBehind) this.nextScanMs = nowMs + pauseMs(this.roundMs)
  }
}

const pauseMs = (workMs: number) =>
  Math.max(SHORTEST_PAUSE_MS, Math.min(LONGEST_PAUSE_MS, workMs * PAUSES_FOR_WORK, OLDEST_MS - 2 * workMs))
