// Sessions for small imports: their temporary tables stay, and their statements are prepared once.
import type { Kind } from '../../core/records/record.ts'
import type { Db } from '../../lib/pg/db.ts'
import { STALLED_MS } from '../../lib/pg/stalled.ts'
import type { Query } from '../../lib/pg/types.ts'
import { createHelper, HELPER_TABLES, HELPERS } from './helper-tables.ts'
import { columnsOf } from './row.ts'
import { createRejected, createStaged, REJECTED, staged } from './staging.ts'

export interface FeedSession {
  query: Query
  /** Creates the staging table of a kind, outside a transaction. */
  prepare(kind: Kind): Promise<void>
}

export interface FeedSessions {
  /**
   * Runs `work` on a separate session; the session is closed if it fails. Only with `isWide` its staging tables hold rows of any
   * size; others fail with the code of `isRowTooLarge`.
   */
  use<T>(isWide: boolean, work: (session: FeedSession) => Promise<T>): Promise<T>
  close(): Promise<void>
}

// An idle session is a connection that others may need.
const IDLE_MS = 30_000

export function openFeedSessions(db: Db): FeedSessions {
  const idle = new Set<Opened>()
  let isClosed = false
  const end = (one: Opened) => {
    idle.delete(one)
    clearTimeout(one.timer)
    one.release(true)
  }
  return {
    async use(isWide, work) {
      const known = [...idle].findLast((one) => one.isWide === isWide)
      if (known) {
        idle.delete(known)
        clearTimeout(known.timer)
      }
      const session = known ?? (await open(db, isWide))
      try {
        const result = await work(session)
        if (isClosed || session.isLost) session.release(true)
        else {
          idle.add(session)
          session.timer = setTimeout(() => end(session), IDLE_MS).unref()
        }
        return result
      } catch (error) {
        session.release(true)
        throw error
      }
    },
    async close() {
      isClosed = true
      for (const one of [...idle]) end(one)
    },
  }
}

interface Opened extends FeedSession {
  isWide: boolean
  release(destroy: boolean): void
  isLost: boolean
  timer: NodeJS.Timeout | undefined
}

async function open(db: Db, isWide: boolean): Promise<Opened> {
  const connection = await db.connect()
  const query = prepared(connection.query)
  const tables = new Set<Kind>()
  const create = async (table: string, statement: string) => {
    await connection.query(statement)
    if (!isWide) await keepInline(connection.query, table)
  }
  const session: Opened = {
    isWide,
    query,
    release: connection.release,
    isLost: false,
    timer: undefined,
    async prepare(kind) {
      if (tables.has(kind)) return
      // Without an index: the end of a transaction empties an index by building it anew, after which PostgreSQL plans every
      // statement again.
      await create(staged(kind), createStaged(kind, ON_COMMIT))
      await appearSmall(connection.query, staged(kind), 'given')
      tables.add(kind)
    },
  }
  connection.client.once('error', () => {
    session.isLost = true
  })
  connection.client.once('end', () => {
    session.isLost = true
  })
  try {
    await Promise.all(SETTINGS.map((setting) => connection.query(setting)))
    for (const [name, columns] of Object.entries(HELPER_TABLES)) await create(name, createHelper(name, columns))
    await create(REJECTED, createRejected(ON_COMMIT))
    for (const [name, column] of HELPERS) await appearSmall(connection.query, name, column)
    await appearSmall(connection.query, REJECTED, 'reason')
  } catch (error) {
    connection.release(true)
    throw error
  }
  return session
}

// With few staged rows an index is right for tables of any size.
const SETTINGS = [
  ...['seqscan', 'hashjoin', 'mergejoin'].map((name) => `set enable_${name} = off`),
  `set idle_in_transaction_session_timeout = ${STALLED_MS}`,
  "set lock_timeout = '8s'",
]

const ON_COMMIT = 'on commit delete rows'

/**
 * Makes an empty table again as one whose values are all stored in its rows. The end of a transaction empties a second table for
 * large values too, and builds its index anew: ten such tables took longer than the rest of a small batch.
 */
async function keepInline(query: Query, table: string): Promise<void> {
  await query(`alter table ${table} rename to import_model`)
  await query(`do $$
    declare name text;
    begin
      for name in select attname from pg_attribute where attrelid = 'pg_temp.import_model'::regclass and attnum > 0 and attstorage <> 'p'
      loop execute format('alter table pg_temp.import_model alter column %I set storage plain', name); end loop;
    end $$`)
  await query(`create temp table ${table} (like import_model including identity including storage) ${ON_COMMIT}`)
  await query('drop table import_model')
}

/** Whether rows did not fit into the staging tables of a session that is not wide. */
export const isRowTooLarge = (error: unknown) => (error as { code?: string }).code === '54000'

/**
 * Gathers statistics of a temporary table while it has one row that fills a page: so PostgreSQL expects a row for each page, and
 * begins each join with the staged rows. Plans are made once, perhaps while the tables of the records are empty.
 */
async function appearSmall(query: Query, table: string, column: string): Promise<void> {
  await query(`alter table ${table} alter column ${column} set storage plain`)
  await Promise.all([
    query('begin'),
    query(`insert into ${table} (${column}) values (repeat('x', 6000))`),
    query(`analyze ${table}`),
    query('commit'),
  ])
}

const names = new Map<string, string>()

/** Prepares each statement once in the session. Only for statements whose texts are few, because values are parameters. */
function prepared(query: Query): Query {
  return (given, params) => {
    if (typeof given !== 'string') return query(given, params)
    const name = names.get(given) ?? `feed ${names.size + 1}`
    names.set(given, name)
    return query({ name, text: given }, params)
  }
}

/** SQL that stages rows, given as a JSON array of objects. */
export function stageRows(kind: Kind): string {
  const columns = [...columnsOf(kind).map(({ name }) => name), 'given', 'source', 'line']
  // `json_populate_recordset` turns the null of JSON into that of SQL.
  const nulls = new Set(columnsOf(kind).flatMap(({ name, nullAsJson }) => (nullAsJson ? [name] : [])))
  const values = columns.map((name) => (nulls.has(name) ? `coalesce(${name}, 'null')` : name))
  return `insert into ${staged(kind)} (${columns.join(', ')})
    select ${values.join(', ')} from json_populate_recordset(null::${staged(kind)}, $1::json)`
}
