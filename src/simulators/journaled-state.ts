// What the state of every simulated provider has: its clock, its scheduled work, and the journal that it is read from.
import { type Job, Jobs } from './jobs.ts'
import { Journal } from './journal.ts'

interface JournalOptions {
  file: string
  fsync: boolean
  /** Milliseconds since 1970, of the machine or of a simulation. */
  wallClockMs: () => number
}

type CommonLine<Task extends string> = { job: Job<Task> } | { done: string } | { ahead_ms: number }

/** `Line`: the lines of the journal that only this provider has. Each has a key that no other line has. */
export abstract class JournaledState<Line extends object, Task extends string> {
  readonly #jobs = new Jobs<Task>()
  readonly #wallClockMs: () => number
  #aheadMs = 0
  #journal!: Journal

  protected constructor({ wallClockMs }: JournalOptions) {
    this.#wallClockMs = wallClockMs
  }

  /** Changes the memory as the line says. */
  protected abstract apply(line: Line): void

  protected abstract newJobId(): string

  /** Reads the journal. Call it before anything else. */
  protected async read({ file, fsync }: JournalOptions): Promise<void> {
    this.#journal = await Journal.open(file, fsync, (line) => this.#apply(line as Line | CommonLine<Task>))
  }

  protected write(line: Line): void {
    this.#write(line)
  }

  /** The provider's time: the wall clock and what `advance` added. */
  nowMs(): number {
    return this.#wallClockMs() + this.#aheadMs
  }

  advance(ms: number): void {
    this.#write({ ahead_ms: this.#aheadMs + ms })
  }

  schedule(task: Task, target: string, afterMs: number): void {
    this.#write({ job: { id: this.newJobId(), at_ms: this.nowMs() + afterMs, task, target } })
  }

  /** Takes the jobs whose time has come, in the order of their times. */
  takeDue(): Job<Task>[] {
    const due = this.#jobs.due(this.nowMs())
    for (const { id } of due) this.#write({ done: id })
    return due
  }

  /** Milliseconds until the next job is due; undefined without one. */
  nextDueInMs(): number | undefined {
    return this.#jobs.nextDueInMs(this.nowMs())
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
    if ('job' in line) this.#jobs.add(line.job)
    else if ('done' in line) this.#jobs.remove(line.done)
    else if ('ahead_ms' in line) this.#aheadMs = line.ahead_ms
    else this.apply(line)
  }
}
