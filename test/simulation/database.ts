// The real PostgreSQL on virtual time, with the product's own connections, whose statements run one at a time as scheduled.
import pg from 'pg'
import { type Db, openDb } from '../../src/lib/pg/db.ts'
import type { NamedRow, Param, Query, Statement } from '../../src/lib/pg/types.ts'
import type { NamedAccount } from '../../src/operations/backup/accounts.ts'
import { Backend } from './backend.ts'
import { type Backup, loadBackup, restoreBackup, takeBackup } from './backup.ts'
import type { Process, Scheduler } from './scheduler.ts'
import { Session, type Shared } from './session.ts'
import { SimulatedSocket } from './socket.ts'
import { FORGET, SEARCH_PATH, SETUP, setBeginning, setTime } from './virtual-clock.ts'
import { hasTie, isInCircle, readWaits, type Waits } from './waits.ts'

/** The faults between a process and its database: for each its probability for one statement. */
export interface DatabaseFaults {
  /** The connection breaks before the statement arrives. */
  before: number
  /** The statement is executed, and the connection breaks before its response arrives. */
  after: number
  /** The statement is executed, and the process dies before it receives the response. */
  crash: number
}

// Statements are planned once, for tables of any size.
const MONITOR = ['set synchronous_commit = off', 'set plan_cache_mode = force_generic_plan', 'set enable_seqscan = off']

// The connections of one process: few, so that its requests also wait for each other.
const CONNECTIONS = 4

export class Database {
  readonly #url: string
  /** The simulation's own connection, besides the simulated ones. */
  readonly #monitor: pg.Client
  readonly #idle: Backend[] = []
  readonly #all: Backend[] = []
  /** All tables before the first seed. */
  readonly #empty: Backup
  /** Whether two statements of the seed have waited for the same connection: see waits.ts. */
  hasTie = false
  #timeMs = 0
  #behindMs = 0
  #sessions = new Set<Session>()
  /** Whether locks may have become free since the blocked statements were checked. */
  #hasChanged = false
  #lookedUpTo = 0

  private constructor(url: string, monitor: pg.Client, empty: Backup) {
    this.#url = url
    this.#monitor = monitor
    this.#empty = empty
  }

  static async open(url: string): Promise<Database> {
    const monitor = new pg.Client({
      connectionString: url,
      types: { getTypeParser: () => (text: string) => text } as never,
    })
    await monitor.connect()
    const empty = await takeBackup(queryOf(monitor), 0)
    for (const text of SETUP) await monitor.query(text)
    await monitor.query(`set search_path = ${SEARCH_PATH}`)
    for (const text of MONITOR) await monitor.query(text)
    return new Database(url, monitor, empty)
  }

  /** Removes the state of the previous seed; a seed that restores a backup begins with empty tables. */
  async begin(isEmpty = false): Promise<void> {
    await this.#endAll()
    this.hasTie = false
    this.#behindMs = 0
    await this.setTime(0)
    if (isEmpty) await this.#alone((query) => loadBackup(query, this.#empty))
    for (const text of FORGET) await this.#monitor.query(text)
  }

  /** A backup of all tables as they are now. */
  async backUp(nowMs: number): Promise<Backup> {
    await this.setTime(nowMs)
    return takeBackup(queryOf(this.#monitor), nowMs - this.#behindMs)
  }

  /** Restores a backup in one step, while all processes are dead. */
  async restore(
    nowMs: number,
    backup: Backup,
    erasureLedger: string,
    accounts: readonly NamedAccount[],
  ): Promise<void> {
    await this.#endAll()
    await this.setTime(nowMs)
    await this.#monitor.query(setBeginning(nowMs - this.#behindMs))
    await restoreBackup(queryOf(this.#monitor), backup, erasureLedger, accounts)
  }

  /** Runs a statement of the simulation itself, immediately and without faults. */
  async ask(nowMs: number, statement: Statement, params: readonly Param[] = []): Promise<NamedRow[]> {
    await this.setTime(nowMs)
    return (await this.#monitor.query({ ...statement, values: params as unknown[] })).rows
  }

  /** The database as a process sees it, with the product's own connections, transactions and batches. */
  of(process: Process, scheduler: Scheduler, faults: DatabaseFaults, changed: () => void): Db {
    const shared: Shared = {
      process,
      scheduler,
      faults,
      changed: () => {
        this.#hasChanged = true
        changed()
      },
      acquire: () => this.#acquire(),
      release: (backend) => this.#release(backend),
      setTime: (ms) => this.setTime(ms),
      beginAt: (ms) => this.#beginAt(ms),
      isWaiting: async (pid) => (await this.#waits([pid])).has(pid),
      cancel: (pid) => this.#cancel(pid),
    }
    const stream = () => {
      const session = new Session(shared)
      this.#sessions.add(session)
      session.socket = new SimulatedSocket(session)
      return session.socket
    }
    return openDb({
      url: this.#url,
      applicationName: 'simulation',
      readConnections: 0,
      connections: CONNECTIONS,
      // The pool's own limit is in real time.
      connectTimeoutMs: 0,
      stream,
    })
  }

  /** After each step: statements whose lock became free continue, and transactions of dead processes are rolled back. */
  async settle(): Promise<void> {
    for (let isMoving = true; isMoving; ) {
      isMoving = false
      if (this.#hasChanged) await this.#receiveUnblocked()
      for (const session of this.#sessions) {
        if (await session.goOn()) isMoving = true
        if (session.isOver) this.#sessions.delete(session)
      }
      if (!isMoving && this.#newlyBlocked() && (await this.#breakDeadlock())) isMoving = true
    }
  }

  /**
   * Receives the responses of the statements whose locks became free, before any of them continues: one may have waited behind
   * another for a moment, and the order in which they continue must not depend on how long that took.
   */
  async #receiveUnblocked(): Promise<void> {
    this.#hasChanged = false
    for (let isMoving = true; isMoving; ) {
      isMoving = false
      const blocked = [...this.#sessions].filter(({ isWaiting }) => isWaiting)
      const waits = await this.#waits(blocked.map(({ pid }) => pid!))
      for (const session of blocked) if (!waits.has(session.pid!) && (await session.receive())) isMoving = true
    }
  }

  async close(): Promise<void> {
    for (const backend of this.#all) backend.close()
    await this.#monitor.end()
  }

  /** How far the clock of the database is behind. */
  get behindMs(): number {
    return this.#behindMs
  }

  /** Sets the clock of the database back, as a correction of the machine's clock or a failover does. It never goes forward to where it was. */
  setBack(byMs: number): void {
    this.#behindMs += byMs
  }

  async setTime(nowMs: number): Promise<void> {
    const ms = nowMs - this.#behindMs
    if (ms === this.#timeMs) return
    this.#timeMs = ms
    await this.#monitor.query(setTime(ms))
  }

  /** The statements that a connection runs before a transaction that begins at this time. */
  #beginAt(nowMs: number): string {
    const ms = nowMs - this.#behindMs
    if (ms === this.#timeMs) return setBeginning(ms)
    this.#timeMs = ms
    return `${setTime(ms)}; ${setBeginning(ms)}`
  }

  async #alone(work: (query: Query) => Promise<void>): Promise<void> {
    const query = queryOf(this.#monitor)
    await query('begin')
    await work(query)
    await query('commit')
  }

  async #endAll(): Promise<void> {
    for (const session of this.#sessions) await session.end()
    this.#sessions = new Set()
  }

  async #acquire(): Promise<Backend> {
    // The most recently used one, which has planned the most statements.
    const idle = this.#idle.pop()
    if (idle) return idle
    const backend = await Backend.open(this.#url, SEARCH_PATH)
    this.#all.push(backend)
    return backend
  }

  async #release(backend: Backend): Promise<void> {
    await backend.reset()
    this.#idle.push(backend)
  }

  async #waits(pids: number[]): Promise<Waits> {
    const waits = await readWaits(this.#monitor, pids)
    this.hasTie ||= hasTie(waits)
    return waits
  }

  async #cancel(pid: number): Promise<void> {
    await this.#monitor.query('select pg_catalog.pg_cancel_backend($1)', [pid])
  }

  /** Whether a statement began to wait since the last check for deadlocks. */
  #newlyBlocked(): boolean {
    const latest = Math.max(0, ...[...this.#sessions].map((one) => (one.isBlocked ? one.blockedAt : 0)))
    const isNew = latest > this.#lookedUpTo
    this.#lookedUpTo = Math.max(latest, this.#lookedUpTo)
    return isNew
  }

  /** Fails a statement of a deadlock, as PostgreSQL does; always the one that began to wait last. */
  async #breakDeadlock(): Promise<boolean> {
    const blocked = [...this.#sessions].filter(({ isBlocked }) => isBlocked)
    if (blocked.length < 2) return false
    const waits = await this.#waits(blocked.map(({ pid }) => pid!))
    const inCircle = blocked.filter(({ pid }) => isInCircle(waits, pid!))
    if (inCircle.length === 0) return false
    const last = inCircle.reduce((one, other) => (one.blockedAt > other.blockedAt ? one : other))
    await last.fail('40P01', 'deadlock detected')
    return true
  }
}

const queryOf =
  (client: pg.Client): Query =>
  async (statement, params = []) => {
    const { text } = typeof statement === 'string' ? { text: statement } : statement
    return (await client.query({ text, values: params as unknown[] })).rows
  }
