// Keeps as many workers as there should be: replaces those that end, and at a restart all of them, one after another.
import type { Logger } from 'pino'
import type { Clock } from '../lib/clock.ts'
import { type Counts, openCounts } from './counts.ts'
import type { FromWorker } from './messages.ts'
import type { Share } from './shares.ts'
import { type Addresses, type Member, startMember } from './worker-process.ts'

interface PoolOptions {
  workers: number
  share: Share
  /** Whether one of them does the background work. */
  work: boolean
  log: Logger
  clock: Clock
}

// A worker that ends sooner than this after being ready may do so again: its successor is delayed, longer each time.
const SHORT_LIFE_MS = 10_000
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 30_000

export class WorkerPool {
  readonly #options: PoolOptions
  readonly #members = new Set<Member>()
  readonly #counts: Counts = openCounts()
  readonly #stopping = new AbortController()
  #begun = false
  #keepingUp = false
  #shortLives = 0
  #restarting: Promise<void> | undefined
  #again = false

  constructor(options: PoolOptions) {
    this.#options = options
  }

  /** Starts all of them; rejects with the sentence of the first that cannot serve, when all have ended. */
  async begin(): Promise<Addresses> {
    const first = Array.from({ length: this.#options.workers }, () => this.#start())
    try {
      const [addresses] = await Promise.all(first.map(({ ready }) => ready))
      this.#begun = true
      void this.#keepUp()
      return addresses!
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  /** Puts a new worker in the place of each that is there now; when asked for meanwhile, once more afterwards. */
  restart(): Promise<void> {
    this.#again = true
    this.#restarting ??= this.#restartAll().finally(() => {
      this.#restarting = undefined
    })
    return this.#restarting
  }

  /** Lets all of them finish what they have begun; resolves when they have ended. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    for (const member of this.#members) member.tell({ is: 'stop' })
    await Promise.all([...this.#members].map(({ ended }) => ended))
  }

  /** Ends all of them at once. */
  kill(): void {
    for (const member of this.#members) member.kill()
  }

  #those(...states: Member['state'][]): Member[] {
    return [...this.#members].filter(({ state }) => states.includes(state))
  }

  #start(): Member {
    const { share, log } = this.#options
    const taken = new Set([...this.#members].map(({ number }) => number))
    let number = 1
    while (taken.has(number)) number += 1
    const member = startMember(number, share, (said) => this.#hear(member, said))
    this.#members.add(member)
    member.ready.then(
      () => {
        log.info({ worker: number, pid: member.pid }, 'A worker is ready.')
        this.#assignWork()
      },
      () => {},
    )
    void member.ended.then(() => this.#end(member))
    return member
  }

  #hear(from: Member, said: FromWorker): void {
    if (said.is === 'counted') this.#counts.take(from, said.counted)
    if (said.is === 'asking') {
      void this.#counts.all(this.#those('ready')).then((counted) => from.tell({ is: 'all', counted }))
    }
  }

  async #end(member: Member): Promise<void> {
    this.#members.delete(member)
    this.#counts.keep(member)
    if (this.#stopping.signal.aborted) return
    this.#assignWork()
    // The caller of #start handles a worker that never became ready.
    if (member.readyMs === undefined || member.dismissed) return
    const { number: worker, pid, readyMs } = member
    const { code, signal } = await member.ended
    this.#shortLives = performance.now() - readyMs < SHORT_LIFE_MS ? this.#shortLives + 1 : 0
    const ending = { worker, pid, code, signal, pause_ms: pauseMs(this.#shortLives) }
    this.#options.log.error(ending, 'A worker has ended by itself; another takes its place.')
    if (this.#begun) await this.#keepUp()
  }

  /** The background work is with one worker at a time, so that it costs the same however many there are. */
  #assignWork(): void {
    const ready = this.#those('ready')
    const next = ready.at(-1)
    if (!this.#options.work || !next || ready.some(({ works }) => works)) return
    next.works = true
    next.tell({ is: 'work' })
  }

  /** Starts what is missing, one by one. */
  async #keepUp(): Promise<void> {
    if (this.#keepingUp) return
    this.#keepingUp = true
    const { log, clock } = this.#options
    while (this.#isShort()) {
      await clock.sleep(pauseMs(this.#shortLives), this.#stopping.signal)
      if (!this.#isShort()) break
      await this.#start().ready.catch((error: Error) => {
        this.#shortLives += 1
        if (!this.#stopping.signal.aborted) log.error(`A worker cannot be replaced yet: ${error.message}`)
      })
    }
    this.#keepingUp = false
  }

  #isShort(): boolean {
    return !this.#stopping.signal.aborted && this.#those('starting', 'ready').length < this.#options.workers
  }

  async #restartAll(): Promise<void> {
    const { log } = this.#options
    while (this.#again && !this.#stopping.signal.aborted) {
      this.#again = false
      log.info('Restarting the workers, one after another.')
      try {
        for (const old of this.#those('ready')) await this.#replace(old)
        if (!this.#stopping.signal.aborted) log.info('All workers are new.')
      } catch (error) {
        if (this.#stopping.signal.aborted) return
        log.error(`The workers that are left go on, for a new one cannot take a place: ${(error as Error).message}`)
      }
    }
  }

  async #replace(old: Member): Promise<void> {
    if (old.state !== 'ready' || this.#stopping.signal.aborted) return
    await this.#start().ready
    // When it has ended meanwhile, the new one has its place already.
    if (old.state === 'ready' && !this.#stopping.signal.aborted) {
      old.dismissed = true
      old.state = 'leaving'
      this.#assignWork()
      old.tell({ is: 'leave' })
    }
    await old.ended
  }
}

const pauseMs = (shortLives: number) =>
  shortLives === 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (shortLives - 1), LONGEST_PAUSE_MS)
