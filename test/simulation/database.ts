// The real PostgreSQL on virtual time: one connection, one transaction at a time, in the order that the scheduler chooses.
import { type Commit, type Db, openDb } from '../../src/lib/pg/db.ts'
import type { Param, Query, Statement } from '../../src/lib/pg/types.ts'
import type { Process, Scheduler } from './scheduler.ts'

/** What may go wrong between a process and its database. */
export interface DatabaseFaults {
  /** The statement never arrives. */
  before: number
  /** It is done, but nobody hears of it. */
  after: number
  /** It is done, and the process dies before it hears of it. */
  crash: number
}

// Stamps and leases follow the virtual clock, to the microsecond the same whenever a seed is played.
const FROZEN_CLOCK = `
  create or replace function db_clock() returns timestamptz language sql volatile as
  $$ select current_setting('tundish.now')::timestamptz $$`
const BEGINNING = Date.parse('2026-01-01T00:00:00Z')

export class Database {
  readonly #db: Db
  readonly #connection: Awaited<ReturnType<Db['connect']>>
  #stampedMs = -1

  private constructor(db: Db, connection: Awaited<ReturnType<Db['connect']>>) {
    this.#db = db
    this.#connection = connection
  }

  static async open(url: string): Promise<Database> {
    const db = openDb({ url, applicationName: 'simulation', readConnections: 0, connections: 1 })
    await db.query(FROZEN_CLOCK)
    const connection = await db.connect()
    await connection.query(`set synchronous_commit = off`)
    return new Database(db, connection)
  }

  /** A statement of the simulation itself: at once, and it never fails. */
  async ask(nowMs: number, statement: string | Statement, params?: readonly Param[]) {
    await this.#setTime(nowMs)
    return this.#connection.query(statement, params)
  }

  /** The database as a process sees it. */
  of(process: Process, scheduler: Scheduler, faults: DatabaseFaults, changed: () => void): Db {
    const through = <T>(name: string, work: () => Promise<T>) =>
      new Promise<T>((resolve, reject) => {
        scheduler.add(process, 0, async () => {
          await this.#setTime(scheduler.nowMs)
          const fate = fateOf(scheduler.random.next(), faults)
          scheduler.tell(`${process.name}: ${name}${fate === 'fine' ? '' : `, ${fate}`}`)
          if (fate === 'lost before') return reject(lost())
          const outcome = await work().then(
            (value) => () => resolve(value),
            (error) => () => reject(error),
          )
          if (!isReading(name)) changed()
          if (fate === 'lost after') return reject(lost())
          if (fate === 'died after') return process.crash()
          outcome()
        })
      })
    const query: Query = (statement, params) =>
      through(nameOf(statement), async () => sorted(await this.#connection.query(statement, params)) as never)
    return {
      query,
      tx: (work) => through('transaction', () => this.#transaction(work)),
      read: () => Promise.reject(new Error('The simulation has no pipelined reads.')),
      readLong: () => Promise.reject(new Error('The simulation reads no lists.')),
      connect: () => Promise.reject(new Error('The simulation has one connection.')),
      fair: (_tenant, _weight, work) => work(),
      activity: () => ({ open: 1, idle: 0, most: 1, waiting: 0, reads: 0, turns: 0 }),
      close: async () => {},
    }
  }

  async close(): Promise<void> {
    this.#connection.release()
    await this.#db.close()
  }

  async #transaction<T>(work: (query: Query, commit: Commit) => Promise<T>): Promise<T> {
    await this.#connection.query('begin')
    try {
      // Whether the commit goes along or afterwards is the same from outside.
      const result = await work(inTurn(this.#connection.query), () => {})
      await this.#connection.query('commit')
      return result
    } catch (error) {
      await this.#connection.query('rollback')
      throw error
    }
  }

  async #setTime(nowMs: number): Promise<void> {
    if (nowMs === this.#stampedMs) return
    this.#stampedMs = nowMs
    const now = new Date(BEGINNING + nowMs).toISOString()
    await this.#connection.query(SET_TIME, [now])
  }
}

/** What is asked for together is done one after the other. */
function inTurn(query: Query): Query {
  let last: Promise<unknown> = Promise.resolve()
  return (statement, params) => {
    const next = last.then(() => query(statement, params))
    last = next.catch(() => {})
    return next as never
  }
}

const SET_TIME: Statement = { name: 'set time', text: `select set_config('tundish.now', $1, false)` }

type Fate = 'fine' | 'lost before' | 'lost after' | 'died after'

function fateOf(chance: number, { before, after, crash }: DatabaseFaults): Fate {
  if (chance < before) return 'lost before'
  if (chance < before + after) return 'lost after'
  return chance < before + after + crash ? 'died after' : 'fine'
}

const LOSS = 'Connection terminated unexpectedly'

/** Whether it is an error of the kind that this database makes on purpose. */
export const isLoss = (error: Error) => error.message === LOSS

const lost = () => Object.assign(new Error(LOSS), { code: 'ECONNRESET', syscall: 'read' })

const nameOf = (statement: string | Statement) =>
  typeof statement === 'string' ? 'statement' : (statement.name ?? 'statement')

const isReading = (name: string) => /^(find|read) /.test(name)

/** Plans differ with statistics, and rows that nobody ordered come with the plan: a seed must not depend on it. */
function sorted<R>(rows: R[]): R[] {
  return rows.length < 2 ? rows : rows.sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1))
}
