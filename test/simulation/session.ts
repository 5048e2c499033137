// A connection of a simulated process: runs its statements on a real connection, step by step, with faults.
import { setTimeout as sleep } from 'node:timers/promises'
import { SHARED_LOCK_TIMEOUT } from '../../src/lib/batching.ts'
import { type Backend, errorIn, type Unit } from './backend.ts'
import type { DatabaseFaults } from './database.ts'
import { errorMessage, type Message } from './messages.ts'
import type { Process, Scheduler } from './scheduler.ts'
import { type Link, nameOf, type SimulatedSocket } from './socket.ts'

export interface Shared {
  process: Process
  scheduler: Scheduler
  faults: DatabaseFaults
  /** Called when a transaction has ended: its changes are visible, and its locks are free. */
  changed(): void
  acquire(): Promise<Backend>
  release(backend: Backend): Promise<void>
  setTime(ms: number): Promise<void>
  /** The statements to run before a transaction that begins at this time. */
  beginAt(ms: number): string
  isWaiting(pid: number): Promise<boolean>
  cancel(pid: number): Promise<void>
}

// PostgreSQL's limits, on virtual time: the settings of our connections.
const STATEMENT_TIMEOUT_MS = 30_000
const LOCK_TIMEOUT_MS = Number.parseInt(SHARED_LOCK_TIMEOUT, 10)
const IDLE_IN_TRANSACTION_MS = 5_000
// A statement without a response after this time may be waiting for a lock; then the simulation queries PostgreSQL.
const QUICK_MS = 2

// The first statement of an import, whose statements have no timeout.
const IMPORT = 'select set_config(name, case name'

type Fate = 'fine' | 'lost before' | 'lost after' | 'died after'

interface Running {
  unit: Unit
  name: string
  fate: Fate
  response: Promise<Message[]>
  /** What the response is, once the lock that it waited for became free. */
  received?: Message[] | undefined
}

let waits = 0

export class Session implements Link {
  socket!: SimulatedSocket
  /** A counter, to find the statement that began to wait for a lock last. */
  blockedAt = 0
  isOver = false
  readonly #shared: Shared
  #backend: Backend | undefined
  #blocked: Running | undefined
  #responses: Message[] = []
  #isScheduled = false
  #isInTransaction = false
  #hasFailed = false
  #isBroken = false
  #isImport = false
  /** Whether the transaction has a lock timeout. */
  #hasLockTimeout = false
  /** Statements that PostgreSQL had not received when the process died never run. */
  #isCut: boolean | undefined
  #limit: ReturnType<Scheduler['add']> | undefined

  constructor(shared: Shared) {
    this.#shared = shared
  }

  get isBlocked(): boolean {
    return this.#blocked !== undefined
  }

  /** Whether its statement waits for a lock, as far as is known. */
  get isWaiting(): boolean {
    return this.#blocked !== undefined && this.#blocked.received === undefined
  }

  get pid(): number | undefined {
    return this.#backend?.pid
  }

  ready(): void {
    if (this.#isScheduled || this.#blocked || this.isOver) return
    this.#isScheduled = true
    // PostgreSQL runs what it has received, even if the process has died.
    this.#shared.scheduler.add(undefined, 0, () => this.#step())
  }

  closed(): void {
    this.#isBroken = true
  }

  /** Receives the response of a statement that no longer waits for its lock; returns whether it came. */
  async receive(): Promise<boolean> {
    const running = this.#blocked!
    running.received = await this.#responseOf(running)
    return running.received !== undefined
  }

  /**
   * Between steps: continues with the response of a statement that waited for its lock, and ends dead or broken connections.
   * Returns whether it did anything.
   */
  async goOn(): Promise<boolean> {
    if (this.isOver) return false
    if (this.#blocked) {
      const running = this.#blocked
      if (!running.received) return false
      this.#blocked = undefined
      this.#stopLimit()
      await this.#finish(running, running.received)
      return true
    }
    const isGone = this.#isBroken || !this.#shared.process.isAlive
    if (!isGone) return false
    this.#isCut ??= this.#isBroken || this.#shared.scheduler.random.chance(0.5)
    if (!this.#isCut && this.socket.next()) return false
    await this.end()
    return true
  }

  /** PostgreSQL detects that the client is gone, and rolls back its open transaction. */
  async end(): Promise<void> {
    if (this.isOver) return
    this.isOver = true
    this.#stopLimit()
    if (this.#blocked) {
      await this.#shared.cancel(this.pid!)
      await this.#blocked.response
      this.#blocked = undefined
    }
    if (this.#backend) await this.#shared.release(this.#backend)
    this.#shared.changed()
    this.#backend = undefined
  }

  /** Ends the statement that waits for a lock with an error. */
  async fail(code: string, text: string): Promise<void> {
    const running = this.#blocked!
    this.#blocked = undefined
    this.#stopLimit()
    await this.#shared.cancel(this.pid!)
    const response = await running.response
    const told = response.map((one) => (one.type === 'E' ? { type: 'E', bytes: errorMessage(code, text) } : one))
    await this.#finish(running, told)
  }

  async #step(): Promise<void> {
    this.#isScheduled = false
    const { scheduler, process, faults } = this.#shared
    if (this.isOver || this.#isCut || !this.socket.next()) return
    const unit = this.socket.shift()
    const name = nameOf(unit)
    this.#isImport ||= name.startsWith(IMPORT)
    this.#hasLockTimeout ||= unit.some(({ bytes }) => bytes.includes(SHARED_LOCK_TIMEOUT))
    const fate = process.isAlive ? fateOf(scheduler.random.next(), faults) : 'fine'
    scheduler.tell(`${process.name}: ${name}${fate === 'fine' ? '' : `, ${fate}`}`)
    if (fate === 'lost before') return this.#break()
    this.#stopLimit()
    const { nowMs } = scheduler
    this.#backend ??= await this.#shared.acquire()
    const before = this.#isInTransaction ? undefined : this.#shared.beginAt(nowMs)
    if (this.#isInTransaction) await this.#shared.setTime(nowMs)
    this.#isInTransaction = true
    const running: Running = { unit, name, fate, response: this.#backend.run(unit, before) }
    const response = await this.#responseOf(running)
    if (response) return this.#finish(running, response)
    scheduler.tell(`${process.name}: ${name} waits for a lock`)
    this.#blocked = running
    this.blockedAt = ++waits
    if (!this.#isImport) this.#limitWaiting(running)
  }

  #limitWaiting(running: Running): void {
    const { scheduler } = this.#shared
    const [ms, code, reason] = this.#hasLockTimeout
      ? ([LOCK_TIMEOUT_MS, '55P03', 'lock timeout'] as const)
      : ([STATEMENT_TIMEOUT_MS, '57014', 'statement timeout'] as const)
    const stillBefore = scheduler.stillMs
    this.#limit = scheduler.add(undefined, ms, () => {
      if (this.#blocked !== running) return undefined
      const why = scheduler.stillMs > stillBefore ? STOOD_STILL : ''
      return this.fail(code, `canceling statement due to ${reason}${why}`)
    })
  }

  /** The response, or undefined while the statement waits for a lock. */
  async #responseOf({ response }: Running): Promise<Message[] | undefined> {
    for (;;) {
      const quick = await Promise.race([response, sleep(QUICK_MS, undefined)])
      if (quick) return quick
      if (await this.#shared.isWaiting(this.pid!)) return undefined
    }
  }

  async #finish({ fate }: Running, response: Message[]): Promise<void> {
    const { process, changed, scheduler } = this.#shared
    this.#responses.push(...response)
    if (errorIn(response) && !response.some(({ type }) => type === 'Z')) this.#hasFailed = true
    if (this.#hasFailed) this.socket.skipToSync()
    const hasResponse = response.some(({ type }) => 'ZGH'.includes(type))
    const isCopying = 'GH'.includes(response.at(-1)!.type)
    if (hasResponse) {
      this.#hasFailed = false
      this.#isInTransaction = isCopying || this.#backend!.state !== 'I'
      if (!this.#isInTransaction) {
        this.#hasLockTimeout = false
        changed()
      }
    }
    if (fate === 'lost after') return this.#break()
    if (fate === 'died after') process.crash()
    if (hasResponse) {
      const responses = this.#responses.splice(0)
      if (process.isAlive) scheduler.add(process, 0, () => this.socket.respond(responses))
      // A COPY that waits for its rows is not idle.
      if (this.#isInTransaction && !isCopying) this.#limitIdling()
    }
    if (this.socket.next()) this.ready()
  }

  /** PostgreSQL ends a transaction that is idle for too long. */
  #limitIdling(): void {
    const { scheduler, process } = this.#shared
    this.#limit = scheduler.add(undefined, IDLE_IN_TRANSACTION_MS, () => {
      scheduler.tell(`${process.name}: its transaction is ended, for it idles`)
      this.#break()
    })
  }

  #stopLimit(): void {
    if (this.#limit) this.#shared.scheduler.cancel(this.#limit)
    this.#limit = undefined
  }

  /** Breaks the connection; the process is notified when it runs again. */
  #break(): void {
    const { scheduler, process } = this.#shared
    this.#isBroken = true
    this.#isCut = true
    scheduler.add(process, 0, () => {
      this.socket.destroy(lost())
    })
  }
}

function fateOf(chance: number, { before, after, crash }: DatabaseFaults): Fate {
  if (chance < before) return 'lost before'
  if (chance < before + after) return 'lost after'
  return chance < before + after + crash ? 'died after' : 'fine'
}

const LOSS = 'Connection terminated unexpectedly'
// A statement may wait for longer than its limit only while everything stands still, also the holder of the lock.
const STOOD_STILL = ' while everything stood still'

/** Whether it is an error that the simulated database causes deliberately. */
export const isLoss = (error: Error) =>
  /^(Connection terminated|timeout exceeded|Client has encountered a connection error)/.test(error.message) ||
  error.message.endsWith(STOOD_STILL)

const lost = () => Object.assign(new Error(LOSS), { code: 'ECONNRESET', syscall: 'read' })
