// Keeps the configured number of workers running: replaces a worker that ends, and at a restart all of them one by one.
import type { Logger } from 'pino'
import type { Clock } from '../../lib/clock.ts'
import type { FromWorker } from './messages.ts'
import { openMetricsCollector } from './metrics-collector.ts'
import type { Share } from './shares.ts'
import { type Addresses, startWorker, type WorkerProcess } from './worker-process.ts'

interface PoolOptions {
  workers: number
  share: Share
  /** Whether one of the workers does the background work. */
  work: boolean
  log: Logger
  clock: Clock
}

// If a worker ends sooner than this after becoming ready, its successor may too, so it is started after a growing pause.
const SHORT_LIFE_MS = 10_000
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 30_000

export class WorkerPool {
  readonly #options: PoolOptions
  readonly #workers = new Set<WorkerProcess>()
  readonly #metrics = openMetricsCollector()
  readonly #stopping = new AbortController()
  #hasBegun = false
  #isReplacing = false
  #shortLives = 0
  #restarting: Promise<void> | undefined
  #restartRequested = false

  constructor(options: PoolOptions) {
    this.#options = options
  }

  /** Starts all workers. If one cannot serve, stops the others and rejects with its reason. */
  async begin(): Promise<Addresses> {
    const first = Array.from({ length: this.#options.workers }, () => this.#start())
    try {
      const [addresses] = await Promise.all(first.map(({ ready }) => ready))
      this.#hasBegun = true
      void this.#startMissing()
      return addresses!
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  /** Replaces every worker by a new one. If called during a restart, a second restart follows the first. */
  restart(): Promise<void> {
    this.#restartRequested = true
    this.#restarting ??= this.#restartAll().finally(() => {
      this.#restarting = undefined
    })
    return this.#restarting
  }

  /** Lets all workers finish their requests; resolves when they have ended. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    for (const worker of this.#workers) worker.send({ is: 'stop' })
    await Promise.all([...this.#workers].map(({ ended }) => ended))
  }

  /** Ends all workers at once. */
  kill(): void {
    for (const worker of this.#workers) worker.kill()
  }

  #inState(...states: WorkerProcess['state'][]): WorkerProcess[] {
    return [...this.#workers].filter(({ state }) => states.includes(state))
  }

  #start(): WorkerProcess {
    const { share, log } = this.#options
    const taken = new Set([...this.#workers].map(({ number }) => number))
    let number = 1
    while (taken.has(number)) number += 1
    const worker = startWorker(number, share, (message) => this.#receive(worker, message))
    this.#workers.add(worker)
    worker.ready.then(
      () => {
        log.info({ worker: number, pid: worker.pid }, 'A worker is ready.')
        this.#assignWork()
      },
      () => {},
    )
    void worker.ended.then(() => this.#onEnded(worker))
    return worker
  }

  #receive(from: WorkerProcess, message: FromWorker): void {
    if (message.is === 'counted') this.#metrics.receive(from, message.counted)
    if (message.is === 'asking') {
      void this.#metrics.collect(this.#inState('ready')).then((counted) => from.send({ is: 'all', counted }))
    }
  }

  async #onEnded(worker: WorkerProcess): Promise<void> {
    this.#workers.delete(worker)
    this.#metrics.keepCountersOf(worker)
    if (this.#stopping.signal.aborted) return
    this.#assignWork()
    // The caller of #start handles a worker that never became ready.
    if (worker.readyMs === undefined || worker.isDismissed) return
    const { number, pid, readyMs } = worker
    const { code, signal } = await worker.ended
    this.#shortLives = performance.now() - readyMs < SHORT_LIFE_MS ? this.#shortLives + 1 : 0
    const ending = { worker: number, pid, code, signal, pause_ms: pauseMs(this.#shortLives) }
    this.#options.log.error(ending, 'A worker ended unexpectedly; another takes its place.')
    if (this.#hasBegun) await this.#startMissing()
  }

  /** Assigns the background work to one worker at a time, so that its cost does not grow with their number. */
  #assignWork(): void {
    const ready = this.#inState('ready')
    const next = ready.at(-1)
    if (!this.#options.work || !next || ready.some(({ hasWork }) => hasWork)) return
    next.hasWork = true
    next.send({ is: 'work' })
  }

  /** Starts the missing workers, one by one. */
  async #startMissing(): Promise<void> {
    if (this.#isReplacing) return
    this.#isReplacing = true
    const { log, clock } = this.#options
    while (this.#isShort()) {
      await clock.sleep(pauseMs(this.#shortLives), this.#stopping.signal)
      if (!this.#isShort()) break
      await this.#start().ready.catch((error: Error) => {
        this.#shortLives += 1
        if (!this.#stopping.signal.aborted) log.error(`A worker cannot be replaced yet: ${error.message}`)
      })
    }
    this.#isReplacing = false
  }

  #isShort(): boolean {
    return !this.#stopping.signal.aborted && this.#inState('starting', 'ready').length < this.#options.workers
  }

  async #restartAll(): Promise<void> {
    const { log } = this.#options
    while (this.#restartRequested && !this.#stopping.signal.aborted) {
      this.#restartRequested = false
      log.info('Restarting the workers, one after another.')
      try {
        for (const old of this.#inState('ready')) await this.#replace(old)
        if (!this.#stopping.signal.aborted) log.info('All workers are new.')
      } catch (error) {
        if (this.#stopping.signal.aborted) return
        log.error(
          `The restart stopped, and the remaining workers keep running, because a new one cannot start: ${(error as Error).message}`,
        )
      }
    }
  }

  async #replace(old: WorkerProcess): Promise<void> {
    if (old.state !== 'ready' || this.#stopping.signal.aborted) return
    await this.#start().ready
    // If the old worker has ended by then, the new one has replaced it already.
    if (old.state === 'ready' && !this.#stopping.signal.aborted) {
      old.isDismissed = true
      old.state = 'leaving'
      this.#assignWork()
      old.send({ is: 'leave' })
    }
    await old.ended
  }
}

const pauseMs = (shortLives: number) =>
  shortLives === 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (shortLives - 1), LONGEST_PAUSE_MS)
