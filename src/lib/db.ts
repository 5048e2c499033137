// The way to PostgreSQL: pipelined connections for short reads, plain ones for transactions, counts and COPY.
import pg from 'pg'
import { openTurns } from './turns.ts'
import { type Over, streamOf, watchFor } from './watch.ts'

/** A row as PostgreSQL sent it: every value is its text, in the order of the select list. */
export type Row = (string | null)[]
/** A row by column name, every value its text: booleans `t`/`f`, times `2026-01-31 23:59:59.123456+00`. */
export type NamedRow = Record<string, string | null>
export type Param = string | number | bigint | boolean | null | readonly string[] | Buffer

/** A statement of the pipelined pool. With a name it is prepared once on each connection. */
export interface Statement {
  name?: string
  text: string
}

/** Runs one statement of a transaction; with a name it is prepared once on each connection, for what is run often. */
export type Query = <R extends NamedRow = NamedRow>(
  statement: string | Statement,
  params?: readonly Param[],
) => Promise<R[]>

export interface Db {
  /** A short read on a pipelined connection. Not for COPY, transactions, or anything slow: neighbours wait behind it. */
  read(statement: Statement, params: readonly Param[]): Promise<Row[]>
  /** One statement on a plain connection. */
  query: Query
  /**
   * Commits what `work` did, or rolls it back when it throws. A deadlock or a serialization failure runs it again (at
   * most three times in all), so `work` may touch nothing but the database.
   */
  tx<T>(work: (query: Query) => Promise<T>): Promise<T>
  /** A plain connection of one's own, for COPY and session state; `release(true)` throws the connection away. */
  connect(): Promise<{ client: pg.PoolClient; query: Query; release(destroy?: boolean): void }>
  /**
   * Runs a tenant's reading, of this weight (a short read is 1), when it is its turn: however much one tenant asks for, the
   * others find room.
   */
  fair<T>(tenant: string, weight: number, work: () => Promise<T>): Promise<T>
  /** What goes on at this moment, for metrics. */
  activity(): DbActivity
  close(): Promise<void>
}

export interface DbActivity {
  /** Of the plain connections. */
  open: number
  idle: number
  most: number
  /** Who waits for a plain connection. */
  waiting: number
  /** Reads sent on pipelined connections and not answered yet. */
  reads: number
  /** Lists that wait for their tenant's turn. */
  turns: number
}

export interface DbOptions {
  url: string
  applicationName: string
  /** Pipelined connections: a few carry thousands of reads a second. */
  readConnections?: number
  /** Plain connections: how many transactions run at once. */
  connections?: number
  statementTimeoutMs?: number
  connectTimeoutMs?: number
}

const RETRIED = new Set(['40001', '40P01'])
const TRIES = 3
const STATEMENT_TIMEOUT_MS = 30_000
// Weights at once, in all and of one tenant: enough to keep the pipelines full, so few that whoever comes next is soon served.
const FAIR_MOST = 96
const FAIR_SHARE = 32

export function openDb(options: DbOptions): Db {
  const pool = new pg.Pool({ ...clientConfig(options), max: options.connections ?? 12, idleTimeoutMillis: 60_000 })
  // An idle connection that breaks is replaced at its next use; without a listener the program would end here.
  pool.on('error', () => {})
  const watch = watchFor(clientConfig(options))
  const pipelines = openPipelines(options, watch.over)
  const turns = openTurns(FAIR_MOST, FAIR_SHARE)

  const query: Query = async (statement, params) => {
    const client = await pool.connect()
    client.on('error', ignore)
    let broken: Error | undefined
    try {
      return await queryOn(client, watch.over)(statement, params)
    } catch (error) {
      if (sqlState(error) === undefined) broken = error as Error
      throw error
    } finally {
      client.removeListener('error', ignore)
      client.release(broken)
    }
  }

  async function connect() {
    const client = await pool.connect()
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

  async function once<T>(work: (query: Query) => Promise<T>): Promise<T> {
    const { client, release } = await connect()
    const query = queryOn(client, watch.over)
    let broken = false
    try {
      await query('begin')
      const result = await work(query)
      await query('commit')
      return result
    } catch (error) {
      // The rollback's own failure must not hide why we are here.
      await query('rollback').catch(() => {
        broken = true
      })
      throw error
    } finally {
      release(broken)
    }
  }

  async function tx<T>(work: (query: Query) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await once(work)
      } catch (error) {
        if (attempt === TRIES || !RETRIED.has(sqlState(error) ?? '')) throw error
      }
    }
  }

  return {
    read: pipelines.read,
    query,
    tx,
    connect,
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
      watch.stop()
      await Promise.all([pool.end(), pipelines.close()])
    },
  }
}

/** The five characters of PostgreSQL's error code, when this is PostgreSQL's error. */
export function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/** Whether the database could not be reached or would not work: the caller may try again later. */
export function isUnavailable(error: unknown): boolean {
  const state = sqlState(error)
  // 57014 is the statement time-out, 25006 a read-only server, 53… out of connections, memory or disk, 58… its files.
  if (state && (/^(08|53|57P|58)/.test(state) || state === '57014' || state === '25006')) return true
  const { code, message } = error as { code?: string; message?: string }
  if (code && ['ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN'].includes(code)) {
    // A missing socket, not any missing file.
    return code !== 'ENOENT' || (error as { syscall?: string }).syscall === 'connect'
  }
  return /^(Connection terminated|timeout e(xceeded|xpired)|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end)/.test(
    message ?? '',
  )
}

function openPipelines(options: DbOptions, over: Over) {
  const slots: (Promise<pg.Client> | undefined)[] = Array.from({ length: options.readConnections ?? 2 })
  let next = 0
  let underWay = 0

  function open(slot: number): Promise<pg.Client> {
    const client = new pg.Client({ ...clientConfig(options), pipeline: true } as pg.ClientConfig)
    const opened = client.connect().then(() => client)
    const forget = () => {
      if (slots[slot] === opened) slots[slot] = undefined
    }
    client.on('error', forget)
    client.on('end', forget)
    opened.catch(forget)
    slots[slot] = opened
    return opened
  }

  return {
    async read(statement: Statement, params: readonly Param[]): Promise<Row[]> {
      const slot = next
      next = (next + 1) % slots.length
      const client = await (slots[slot] ?? open(slot))
      gather(client)
      underWay += 1
      try {
        const asked = { ...statement, values: values(params), rowMode: 'array' as const }
        const result = await over(client, () => client.query<Row>(asked))
        return result.rows
      } finally {
        underWay -= 1
      }
    },
    underWay: () => underWay,
    async close() {
      await Promise.all(slots.map(async (slot) => (await slot?.catch(ignore))?.end()))
    },
  }
}

/** Holds back what is written to this connection until the requests at hand have all been read: one system call for many. */
function gather(client: pg.Client): void {
  const stream = streamOf(client)
  if (stream.writableCorked > 0) return
  stream.cork()
  setImmediate(() => stream.uncork())
}

function clientConfig(options: DbOptions): pg.ClientConfig {
  const { url, given } = withoutSettings(options.url)
  return {
    connectionString: url,
    application_name: options.applicationName,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5_000,
    keepAlive: true,
    // Text stays text: microseconds and decimals survive, and no row passes through a parser.
    types: { getTypeParser: () => (text: string) => text } as unknown as pg.CustomTypesConfig,
    // Generic plans: our statements are shaped so that one plan is right for every parameter.
    options: [
      given,
      '-c TimeZone=UTC',
      '-c DateStyle=ISO',
      '-c jit=off',
      '-c plan_cache_mode=force_generic_plan',
      `-c statement_timeout=${options.statementTimeoutMs ?? STATEMENT_TIMEOUT_MS}`,
      '-c idle_in_transaction_session_timeout=300000',
    ].join(' '),
  }
}

/** The address without its own `options`, which would take the place of ours instead of standing beside them. */
function withoutSettings(url: string): { url: string; given: string } {
  const [address, query = ''] = url.split('?', 2) as [string, string?]
  const parameters = new URLSearchParams(query)
  const given = parameters.get('options') ?? ''
  parameters.delete('options')
  return { url: given === '' ? url : `${address}?${parameters}`, given }
}

function queryOn(client: pg.PoolClient, over?: Over): Query {
  const ask = (statement: string | Statement, params?: readonly Param[]) => client.query(config(statement, params))
  return async (statement, params) =>
    named(over ? await over(client, () => ask(statement, params)) : await ask(statement, params))
}

function config(statement: string | Statement, params: readonly Param[] | undefined): pg.QueryConfig {
  const { name, text } = typeof statement === 'string' ? { text: statement } : statement
  return { ...(name !== undefined && { name }), text, values: values(params) }
}

function named<R extends NamedRow>(result: pg.QueryResult): R[] {
  return result.rows as R[]
}

// pg declares its parameters mutable, though it only reads them.
const values = (params: readonly Param[] | undefined) => params as unknown[] | undefined

function ignore(): undefined {}
