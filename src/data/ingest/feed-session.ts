// Sessions for small imports: their temporary tables stay, and their statements are prepared once.
import type { Kind } from '../../core/records/record.ts'
import type { Db } from '../../lib/pg/db.ts'
import { STALLED_MS } from '../../lib/pg/stalled.ts'
import type { Query } from '../../lib/pg/types.ts'
import { createHelperTables, HELPERS } from './helper-tables.ts'
import { columnsOf } from './row.ts'
import { createRejected, createStaged, REJECTED, staged } from './staging.ts'

export interface FeedSession {
  query: Query
  /** Creates the staging table of a kind, outside a transaction. */
  prepare(kind: Kind): Promise<void>
}

export interface FeedSessions {
  /** Runs `work`, which stages this many rows, on a separate session; the session is closed if it fails. */
  use<T>(rows: number, work: (session: FeedSession) => Promise<T>): Promise<T>
  close(): Promise<void>
}

// Up to this many staged rows are compared with each other without an index. The end of a transaction empties an index by building
// it anew, after which PostgreSQL plans every statement again: a third of its work for small batches.
const FEW_ROWS = 100
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
    async use(rows, work) {
      const isIndexed = rows > FEW_ROWS
      const known = [...idle].findLast((one) => one.isIndexed === isIndexed)
      if (known) {
        idle.delete(known)
        clearTimeout(known.timer)
      }
      const session = known ?? (await open(db, isIndexed))
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
  /** Whether its staging tables have indexes. */
  isIndexed: boolean
  release(destroy: boolean): void
  isLost: boolean
  timer: NodeJS.Timeout | undefined
}

async function open(db: Db, isIndexed: boolean): Promise<Opened> {
  const connection = await db.connect()
  const query = prepared(connection.query)
  const tables = new Set<Kind>()
  const session: Opened = {
    isIndexed,
    query,
    release: connection.release,
    isLost: false,
    timer: undefined,
    async prepare(kind) {
      if (tables.has(kind)) return
      await connection.query(createStaged(kind, 'on commit delete rows'))
      if (isIndexed) await connection.query(`create index on ${staged(kind)} (${kind.key.join(', ')})`)
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
    await createHelperTables(connection.query)
    await connection.query(createRejected('on commit delete rows'))
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
  const columns = [...columnsOf(kind).map(({ name }) => name), 'given', 'source', 'line'].join(', ')
  return `insert into ${staged(kind)} (${columns})
    select ${columns} from json_populate_recordset(null::${staged(kind)}, $1::json)`
}
