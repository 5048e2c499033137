// The way to PostgreSQL: pipelined connections for short reads, plain ones for transactions, counts and COPY.
import pg from 'pg'
import { createFairQueue } from '../fair-queue.ts'
import { type ConnectionOptions, clientConfig } from './client-config.ts'
import { isClash, isReadOnly, sqlState } from './errors.ts'
import { type Guarded, openLiveness } from './liveness.ts'
import { openPipelines, type Read } from './pipelines.ts'
import { nameless, openSingles } from './pooler.ts'
import { packRow } from './row-bytes.ts'
import { type Asking, ask, askForArrays, together } from './transactions.ts'
import type { NamedRow, Param, Query, Statement } from './types.ts'

/**
 * Sends the commit behind what has been asked so far. When one of those statements fails nothing is committed, and `work`
 * must fail with it, or roll back to a savepoint and commit again; it must not fail for any other reason from here on.
 */
export type Commit = () => void

export interface Db {
  /** A short read on a pipelined connection. Not for COPY, transactions, or anything slow: neighbours wait behind it. */
  read: Read
  /** A read that may take its time, on a plain connection. */
  readLong: Read
  /** One statement on a plain connection. */
  query: Query
  /**
   * Commits what `work` did, or rolls it back when it throws. A deadlock or a serialization failure runs it again (at
   * most three times in all), so `work` may touch nothing but the database. What it asks for without waiting in between
   * is sent in one go, and done in that order; so is `commit`, for work that needs no result before it commits.
   */
  tx<T>(work: (query: Query, commit: Commit) => Promise<T>): Promise<T>
  /** A plain connection for the caller alone, for COPY and session state; `release(true)` closes the connection. */
  connect(): Promise<{ client: pg.PoolClient; query: Query; release(destroy?: boolean): void }>
  /**
   * Runs a tenant's read of this weight (a short read is 1) when it is its turn: one tenant's load leaves room for the others.
   */
  fair<T>(tenant: string, weight: number, work: () => Promise<T>): Promise<T>
  /** The load at this moment, for metrics. */
  activity(): DbActivity
  close(): Promise<void>
}

export interface DbActivity {
  /** Of the plain connections. */
  open: number
  idle: number
  most: number
  /** Calls that wait for a plain connection. */
  waiting: number
  /** Reads sent on pipelined connections and not answered yet. */
  reads: number
  /** Lists that wait for their tenant's turn. */
  turns: number
}

export interface DbOptions extends ConnectionOptions {
  /** Pipelined connections: a few carry thousands of reads a second. */
  readConnections?: number
  /** Plain connections: how many transactions run at once. */
  connections?: number
}

const TRIES = 3
// The error of a statement that was sent after one that failed.
const AFTER_A_FAILURE = '25P02'
// Plain connections that stay open when idle. The first user of a new one waits a tenth of a second longer: each statement
// is planned anew there. The connection that was used last is given out first.
const KEPT_CONNECTIONS = 4
// Weights at once, in all and of one tenant: enough to keep the pipelines full, so few that the next caller waits little.
const FAIR_MOST = 96
const FAIR_SHARE = 20
// Connections past the pooler: for one import, and others beside it.
const DIRECT_CONNECTIONS = 4
// Without pipelines a connection carries less; those of a pooler's clients are cheap.
const SINGLES_FOR_PIPELINE = 4

export function openDb(options: DbOptions): Db {
  const { directUrl, connections = 12, readConnections = 3 } = options
  const ours = clientConfig(options)
  const pool = openPool(ours, connections, KEPT_CONNECTIONS)
  const direct = directUrl
    ? openPool(clientConfig({ ...options, url: directUrl, directUrl: undefined }), DIRECT_CONNECTIONS)
    : pool
  const liveness = openLiveness(ours)
  const pipelines = directUrl
    ? openSingles(ours, readConnections * SINGLES_FOR_PIPELINE, liveness.guarded)
    : openPipelines(ours, readConnections, liveness.guarded)
  const bare = <S extends string | Statement>(statement: S) => (directUrl ? nameless(statement) : statement)
  const turns = createFairQueue(FAIR_MOST, FAIR_SHARE)

  async function onPlain<T>(ask: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await pool.connect()
    client.on('error', ignore)
    let broken: Error | undefined
    try {
      return await ask(client)
    } catch (error) {
      if (sqlState(error) === undefined || isReadOnly(error)) broken = error as Error
      throw error
    } finally {
      client.removeListener('error', ignore)
      client.release(broken)
    }
  }

  const query: Query = (statement, params) =>
    onPlain((client) => queryOn(client, liveness.guarded)(bare(statement), params))

  const readLong: Read = (statement, params, take) =>
    onPlain(async (client) => {
      const found = await liveness.guarded(client, () => askForArrays(client, bare(statement), params))
      const rows = found.map(packRow)
      if (!take) return rows
      rows.forEach(take)
      return []
    })

  async function connect(to = direct) {
    const client = await to.connect()
    client.on('error', ignore)
    return {
      client,
      query: queryOn(client),
      release(destroy = false) {
        client.removeListener('error', ignore)
        client.release(destroy)
      },
    }
  }

  async function once<T>(work: (query: Query, commit: Commit) => Promise<T>): Promise<T> {
    const { client, release } = await connect(pool)
    let failed: unknown
    const asking = together(client)
    const asked: Asking = (statement, params) => liveness.guarded(client, () => asking(bare(statement), params))
    const query = async <R extends NamedRow>(given: string | Statement, params: readonly Param[] = []) => {
      try {
        return (await asked(asStatement(given), params)).found as R[]
      } catch (error) {
        if (sqlState(error) !== AFTER_A_FAILURE) failed = error
        throw error
      }
    }
    let committed: Promise<void> | undefined
    let commitFailed = false
    const commit = () => {
      if (committed && !commitFailed) return
      commitFailed = false
      committed = commitWith(asked)
      // The error is thrown below, unless `work` rolls back to a savepoint and commits again.
      committed.catch(() => {
        commitFailed = true
      })
    }
    let broken = false
    try {
      const begun = query(BEGIN)
      // Goes with the first statement, which fails with it.
      begun.catch(ignore)
      const result = await work(query, commit)
      await begun
      if (!committed) commit()
      await committed
      return result
    } catch (error) {
      broken = isReadOnly(error)
      // The rollback's own failure must not hide why we are here.
      await query(ROLLBACK).catch(() => {
        broken = true
      })
      throw sqlState(error) === AFTER_A_FAILURE ? (failed ?? error) : error
    } finally {
      release(broken)
    }
  }

  async function tx<T>(work: (query: Query, commit: Commit) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await once(work)
      } catch (error) {
        if (attempt === TRIES || !isClash(error)) throw error
      }
    }
  }

  return {
    read: pipelines.read,
    readLong,
    query,
    tx,
    connect: () => connect(),
    fair: turns.run,
    activity: () => ({
      open: pool.totalCount,
      idle: pool.idleCount,
      most: pool.options.max,
      waiting: pool.waitingCount,
      reads: pipelines.underWay(),
      turns: turns.waiting(),
    }),
    async close() {
      liveness.stop()
      await Promise.all([pool.end(), direct !== pool && direct.end(), pipelines.close()])
    },
  }
}

/** At most so many connections, of which some stay open when idle. */
function openPool(config: pg.ClientConfig, max: number, kept = 0): pg.Pool {
  const pool = new pg.Pool({ ...config, max, min: kept, idleTimeoutMillis: 60_000 })
  // An idle connection that breaks is replaced at its next use; without a listener the program would end here.
  pool.on('error', ignore)
  return pool
}

function queryOn(client: pg.PoolClient, guarded?: Guarded): Query {
  return async <R extends NamedRow>(given: string | Statement, params: readonly Param[] = []) => {
    const asking = () => ask(client, asStatement(given), params)
    return (await (guarded ? guarded(client, asking) : asking())) as R[]
  }
}

const asStatement = (given: string | Statement): Statement => (typeof given === 'string' ? { text: given } : given)

// Each is prepared once on a connection, as all that is asked often.
const BEGIN: Statement = { name: 'begin', text: 'begin' }
const COMMIT: Statement = { name: 'commit', text: 'commit' }
const ROLLBACK: Statement = { name: 'rollback', text: 'rollback' }

async function commitWith(asked: Asking): Promise<void> {
  const { did } = await asked(COMMIT, [])
  // PostgreSQL's answer to the commit of a transaction in which something failed.
  if (did !== 'COMMIT') throw new Error(`Bug: a transaction in which a statement failed ended with ${did}`)
}

function ignore(): undefined {}
