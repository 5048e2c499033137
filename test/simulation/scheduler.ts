// The seeded scheduler: everything that waits (for the database, the network, or time) waits here, and one event runs at a time.
import type { Clock } from '../../src/lib/clock.ts'
import type { Random } from './random.ts'

/** Something that could happen next. */
interface Step {
  /** Milliseconds of virtual time before which it cannot happen. */
  atMs: number
  process: Process | undefined
  /** For a search for due work: it does not run before some work is due. */
  isPoll: boolean
  run: () => Promise<void> | void
}

/** A simulated process, which can crash and freeze, and has its own clock. */
export class Process {
  readonly name: string
  isAlive = true
  pausedUntilMs = 0
  readonly crashed: Promise<void>
  #tellCrash = () => {}

  constructor(name: string) {
    this.name = name
    this.crashed = new Promise((resolve) => {
      this.#tellCrash = resolve
    })
  }

  /** Ends it: nothing that it waits for happens after that. */
  crash(): void {
    this.isAlive = false
    this.#tellCrash()
  }
}

export class Scheduler {
  readonly random: Random
  nowMs = 0
  /** How long everything has stood still so far. */
  stillMs = 0
  /** When the next work in the database is due; searches for due work are skipped until then. */
  dueMs = Number.POSITIVE_INFINITY
  readonly #steps = new Set<Step>()
  /** The steps so far, to be printed for a failed seed. */
  readonly story: string[] = []

  constructor(random: Random) {
    this.random = random
  }

  tell(text: string): void {
    this.story.push(`${String(this.nowMs).padStart(7)} ms  ${text}`)
  }

  /** Schedules `run` once, `afterMs` from now or later. */
  add(process: Process | undefined, afterMs: number, run: Step['run'], isPoll = false): Step {
    const step = { atMs: this.nowMs + afterMs, process, run, isPoll }
    this.#steps.add(step)
    return step
  }

  cancel(step: Step): void {
    this.#steps.delete(step)
  }

  /** Time passes at once, as for a suspended machine. */
  standStill(ms: number): void {
    this.tell('everything stands still')
    this.nowMs += ms
    this.stillMs += ms
  }

  /** Runs asynchronous work of the simulation itself as one step, during which nothing else runs. */
  asStep<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => this.add(undefined, 0, () => work().then(resolve, reject)))
  }

  sleep(ms: number, process?: Process): Promise<void> {
    return new Promise((resolve) => this.add(process, ms, resolve))
  }

  /** The pauses of background work, which has nothing to do before some work is due, are polls; a command that waits is not. */
  clockOf(process: Process, isPoll: boolean): Clock {
    return {
      monotonicMs: () => this.nowMs,
      sleep: (ms, signal) =>
        new Promise((resolve) => {
          if (signal?.aborted) return resolve()
          const step = this.add(process, ms, resolve, isPoll)
          signal?.addEventListener('abort', () => {
            this.cancel(step)
            this.add(process, 0, resolve)
          })
        }),
    }
  }

  /** Runs one of the events that can run now; returns false if there is none. */
  async step(): Promise<boolean> {
    const ready: Step[] = []
    for (const step of this.#steps) {
      if (step.process?.isAlive === false) this.#steps.delete(step)
      else if (this.#readyMs(step) <= this.nowMs) ready.push(step)
    }
    if (ready.length === 0) return false
    const chosen = this.random.pick(ready)
    this.#steps.delete(chosen)
    await chosen.run()
    await settleDown()
    return true
  }

  /** Whether an event can run now. */
  isReady(): boolean {
    return [...this.#steps].some((step) => step.process?.isAlive !== false && this.#readyMs(step) <= this.nowMs)
  }

  /** The next instant at which an event can run; undefined if there is none. */
  nextMs(): number | undefined {
    const alive = [...this.#steps].filter(({ process }) => process?.isAlive !== false)
    const next = Math.min(...alive.map((step) => this.#readyMs(step)).filter((ms) => ms > this.nowMs))
    return Number.isFinite(next) ? next : undefined
  }

  #readyMs({ atMs, process, isPoll }: Step): number {
    return Math.max(atMs, process?.pausedUntilMs ?? 0, isPoll ? this.dueMs : 0)
  }
}

// A batch is sent in the next turn of the event loop, its response is read in the one after that, and so on.
const ROUNDS = 3
// Node's name for pending requests to the file system.
const FILES = /FSReq|CloseReq/i

/** Resolves to true when everything has happened that follows from a step without waiting, including file operations. */
export async function settleDown(rounds = ROUNDS): Promise<true> {
  for (let round = 0; round < rounds; round++) {
    await new Promise((resolve) => setImmediate(resolve))
    if (process.getActiveResourcesInfo().some((name) => FILES.test(name))) round = -1
  }
  return true
}
