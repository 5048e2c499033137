// What the state of every simulated provider has: its clock, its scheduled work, and the journal that it is read from.
import { randomUUID } from 'node:crypto'
import { Journal } from './journal.ts'

export interface JournalOptions {
  file: string
  fsync: boolean
  /** Milliseconds since 1970, of the machine or of a simulation. */
  wallClockMs: () => number
}

/** Work that becomes due by the provider's own clock. */
interface Job<Task extends string> {
  id: string
  /** By the provider's own clock. */
  at_ms: number
  task: Task
  /** The object, or for a `call` the call as JSON. */
  target: string
}

type CommonLine<Task extends string> = { job: Job<Task> } | { done: string } | { ahead_ms: number }

/** `Line`: the lines of the journal that only this provider has. Each has a key that no other line has. */
export abstract class JournaledState<Line extends object, Task extends string> {
  readonly #options: JournalOptions
  readonly #jobs = new Map<string, Job<Task>>()
  #aheadMs = 0
  #journal!: Journal

  constructor(options: JournalOptions) {
    this.#options = options
  }

  /** Changes the memory as the line says. */
  protected abstract apply(line: Line): void

  /** Reads the journal. Call it before anything else. */
  async read(): Promise<this> {
    const { file, fsync } = this.#options
    this.#journal = await Journal.open(file, fsync, (line) => this.#apply(line as Line | CommonLine<Task>))
    return this
  }

  protected write(line: Line): void {
    this.#write(line)
  }

  /** The receivers' time, not the provider's. */
  wallClockMs(): number {
    return this.#options.wallClockMs()
  }

  /** The provider's time: the wall clock and what `advance` added. */
  nowMs(): number {
    return this.wallClockMs() + this.#aheadMs
  }

  advance(ms: number): void {
    this.#write({ ahead_ms: this.#aheadMs + ms })
  }

  schedule(task: Task, target: string, afterMs: number): void {
    this.#write({ job: { id: randomUUID(), at_ms: this.nowMs() + afterMs, task, target } })
  }

  /** Takes the jobs whose time has come, in the order of their times. */
  takeDue(): Job<Task>[] {
    const nowMs = this.nowMs()
    const due = [...this.#jobs.values()].filter(({ at_ms }) => at_ms <= nowMs).sort((a, b) => a.at_ms - b.at_ms)
    for (const { id } of due) this.#write({ done: id })
    return due
  }

  /** Milliseconds until the next job is due; undefined without one. */
  nextDueInMs(): number | undefined {
    if (this.#jobs.size === 0) return undefined
    return Math.max(0, Math.min(...[...this.#jobs.values()].map(({ at_ms }) => at_ms)) - this.nowMs())
  }

  /** Resolves when everything written so far is on disk. */
  durable(): Promise<void> {
    return this.#journal.durable()
  }

  close(): Promise<void> {
    return this.#journal.close()
  }

  #write(line: Line | CommonLine<Task>): void {
    this.#apply(line)
    this.#journal.append(line)
  }

  #apply(line: Line | CommonLine<Task>): void {
    if ('job' in line) this.#jobs.set(line.job.id, line.job)
    else if ('done' in line) this.#jobs.delete(line.done)
    else if ('ahead_ms' in line) this.#aheadMs = line.ahead_ms
    else this.apply(line)
  }
}
