// Work of a simulated provider that becomes due by the provider's own clock.

export interface Job<Task extends string> {
  id: string
  /** By the provider's own clock. */
  at_ms: number
  task: Task
  /** The object, or for a `call` the call as JSON. */
  target: string
}

export class Jobs<Task extends string> {
  readonly #jobs = new Map<string, Job<Task>>()

  add(job: Job<Task>): void {
    this.#jobs.set(job.id, job)
  }

  remove(id: string): void {
    this.#jobs.delete(id)
  }

  /** Those whose time has come, in the order of their times. */
  due(nowMs: number): Job<Task>[] {
    return [...this.#jobs.values()].filter(({ at_ms }) => at_ms <= nowMs).sort((a, b) => a.at_ms - b.at_ms)
  }

  /** Milliseconds until the next job is due; undefined without one. */
  nextDueInMs(nowMs: number): number | undefined {
    if (this.#jobs.size === 0) return undefined
    return Math.max(0, Math.min(...[...this.#jobs.values()].map(({ at_ms }) => at_ms)) - nowMs)
  }
}

/** Moves a provider's clock forward, and runs each job that becomes due by then at its own time. */
export function advanceThroughJobs(
  ms: number,
  clock: { nextDueInMs(): number | undefined; advance(ms: number): void; runDueJobs(): void },
): void {
  let leftMs = ms
  for (let due = clock.nextDueInMs(); due !== undefined && due <= leftMs; due = clock.nextDueInMs()) {
    clock.advance(due)
    clock.runDueJobs()
    leftMs -= due
  }
  clock.advance(leftMs)
  clock.runDueJobs()
}

export interface JobTimerOptions {
  /** Resolves after `ms`, or at once when `signal` aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
  closing: AbortSignal
  nextDueInMs(): number | undefined
  /** Runs the jobs that are due. */
  run(): void
}

/** One timer, for the next job. */
export class JobTimer {
  readonly #options: JobTimerOptions
  #waiting: AbortController | undefined

  constructor(options: JobTimerOptions) {
    this.#options = options
  }

  /** Waits for the job that is next by now. */
  set(): void {
    const { sleep, closing, nextDueInMs, run } = this.#options
    this.#waiting?.abort()
    const dueInMs = nextDueInMs()
    if (dueInMs === undefined || closing.aborted) return
    const waiting = new AbortController()
    this.#waiting = waiting
    const signal = AbortSignal.any([waiting.signal, closing])
    void sleep(Math.min(dueInMs, 2 ** 31 - 1), signal).then(() => {
      if (signal.aborted) return
      run()
      this.set()
    })
  }
}
