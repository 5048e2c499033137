// Connections to PostgreSQL: pipelined ones for short reads, plain ones for transactions, counts and COPY.
import pg from 'pg'
import { createFairQueue } from '../fair-queue.ts'
import { Client } from './client.ts'
import { type ConnectionOptions, clientConfig } from './client-config.ts'
import { isReadOnly, sqlState } from './errors.ts'
import { type Guarded, openLiveness } from './liveness.ts'
import { openPipelines, type Read } from './pipelines.ts'
import { nameless, openUnpipelined } from './pooler.ts'
import { packRow } from './row-bytes.ts'
import { asStatement, retryClashes, runTransaction, type Work } from './run-transaction.ts'
import { queryArrays, queryRows, sendTogether, sessionQuery } from './transactions.ts'
import type { NamedRow, Param, Query, Statement } from './types.ts'

export type { Commit } from './run-transaction.ts'

export interface Db {
  /** A short read on a pipelined connection. Not for COPY, transactions, or anything slow: other reads wait behind it. */
  read: Read
  /** A read that may be slow, on a plain connection. */
  readLong: Read
  /** One statement on a plain connection. */
  query: Query
  /**
   * Commits what `work` did, or rolls it back when it throws. A deadlock or a serialization failure runs it again (at most
   * three times in total), so `work` may have no effect outside the database. Statements that it starts without awaiting in
   * between are sent together and run in that order; so is `commit`, for work that needs no result before it commits.
   */
  tx<T>(work: Work<T>): Promise<T>
  /**
   * A plain connection for the caller alone, for COPY and session state; `release(true)` closes the connection. Statements that
   * are started without awaiting in between are sent together, and run in that order.
   */
  connect(): Promise<{ client: pg.PoolClient; query: Query; release(destroy?: boolean): void }>
  /**
   * Runs a tenant's read in the tenant's turn, so that one tenant cannot take the capacity of others. A short read has the
   * weight 1.
   */
  fair<T>(tenant: string, weight: number, work: () => Promise<T>): Promise<T>
  /** The current load, for metrics. */
  activity(): DbActivity
  close(): Promise<void>
}

export interface DbActivity {
  /** Plain connections. */
  open: number
  idle: number
  most: number
  /** Calls that wait for a plain connection. */
  waiting: number
  /** Unfinished reads on pipelined connections. */
  reads: number
  /** Reads that wait for their tenant's turn. */
  turns: number
}

export interface DbOptions extends ConnectionOptions {
  /** Pipelined connections: a few carry thousands of reads a second. */
  readConnections?: number
  /** Plain connections: the limit of concurrent transactions. */
  connections?: number
}

// Plain connections that stay open when idle. The first use of a new connection takes a tenth of a second longer, because
// its statements are planned again. The most recently used connection is used first.
const KEPT_CONNECTIONS = 4
// The concurrent weight, in total and of one tenant: enough to keep the pipelines full, and little enough for short waits.
const MAX_FAIR_WEIGHT = 96
const MAX_WEIGHT_OF_TENANT = 20
// Connections that bypass the pooler, for imports and other work that needs a session.
const DIRECT_CONNECTIONS = 4
// Read connections in place of each pipelined one: without pipelines a connection serves fewer reads, and a pooler's are cheap.
const UNPIPELINED_PER_PIPELINE = 4

export function openDb(options: DbOptions): Db {
  const { directUrl, connections = 12, readConnections = 3 } = options
  const config = clientConfig(options)
  const pool = openPool(config, connections, KEPT_CONNECTIONS)
  const direct = directUrl
    ? openPool(clientConfig({ ...options, url: directUrl, directUrl: undefined }), DIRECT_CONNECTIONS)
    : pool
  const { guarded, stop } = openLiveness(config)
  const pipelines = directUrl
    ? openUnpipelined(config, readConnections * UNPIPELINED_PER_PIPELINE, guarded)
    : openPipelines(config, readConnections, guarded)
  const forServer = <S extends string | Statement>(statement: S) => (directUrl ? nameless(statement) : statement)
  const turns = createFairQueue(MAX_FAIR_WEIGHT, MAX_WEIGHT_OF_TENANT)

  const readLong: Read = (statement, params, take) =>
    withClient(pool, async (client) => {
      const arrays = await guarded(client, () => queryArrays(client, forServer(statement), params))
      const rows = arrays.map(packRow)
      if (!take) return rows
      rows.forEach(take)
      return []
    })

  async function txOnce<T>(work: Work<T>): Promise<T> {
    const { client, release } = await connectTo(pool)
    const send = sendTogether(client)
    const outcome = await runTransaction(
      (statement, params) => guarded(client, () => send(forServer(statement), params)),
      work,
    )
    release(outcome.kind === 'failed' && outcome.isConnectionBroken)
    if (outcome.kind === 'failed') throw outcome.error
    return outcome.result
  }

  return {
    read: pipelines.read,
    readLong,
    query: (statement, params) => withClient(pool, (client) => queryOn(client, guarded)(forServer(statement), params)),
    tx: (work) => retryClashes(() => txOnce(work)),
    connect: () => connectTo(direct),
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
      stop()
      await Promise.all([pool.end(), direct !== pool && direct.end(), pipelines.close()])
    },
  }
}

/** A pool of at most `max` connections, of which `kept` stay open when idle. */
function openPool(config: pg.ClientConfig, max: number, kept = 0): pg.Pool {
  const pool = new pg.Pool({ ...config, Client, max, min: kept, idleTimeoutMillis: 60_000 })
  // An idle connection that breaks is replaced at its next use; without a listener the program would end here.
  pool.on('error', ignore)
  // The end of a connection can arrive with its last response, before the caller has the client.
  pool.on('connect', (client) => client.on('error', ignore))
  return pool
}

/** Runs `work` on a connection of the pool; it is closed after a failure that is not an error of PostgreSQL. */
async function withClient<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  let broken: Error | undefined
  try {
    return await work(client)
  } catch (error) {
    if (sqlState(error) === undefined || isReadOnly(error)) broken = error as Error
    throw error
  } finally {
    client.release(broken)
  }
}

async function connectTo(pool: pg.Pool) {
  const client = await pool.connect()
  return { client, query: sessionQuery(client), release: (destroy = false) => client.release(destroy) }
}

function queryOn(client: pg.PoolClient, guarded: Guarded): Query {
  return async <R extends NamedRow>(given: string | Statement, params: readonly Param[] = []) => {
    const send = () => queryRows(client, asStatement(given), params)
    return (await guarded(client, send)) as R[]
  }
}

function ignore(): undefined {}
