// A test's own database: opened as the program opens it, locks held and waited for in it, and its content.
import { randomBytes } from 'node:crypto'
import { after, before } from 'node:test'
import { type Db, type DbOptions, openDb } from '../../src/lib/pg/db.ts'
import type { Query } from '../../src/lib/pg/types.ts'
import { type FreshDatabase, freshDatabase } from './postgres.ts'
import { until } from './time.ts'

/** For the tests of a file or a `describe`: a fresh database, opened with these options. */
export function setUpDb(options: Partial<DbOptions> = {}) {
  let database: FreshDatabase
  let db: Db
  before(async () => {
    database = await freshDatabase()
    db = openDb({ url: database.url, applicationName: 'test', ...options })
  })
  after(async () => {
    await db.close()
    await database.drop()
  })
  return {
    get url() {
      return database.url
    },
    get db() {
      return db
    },
  }
}

/** For the tests of a file or a `describe`: the settings of commands, with a fresh database and a master key. */
export function setUpEnv(more: Record<string, string> = {}): Record<string, string> {
  const env: Record<string, string> = { MASTER_KEY: randomBytes(32).toString('base64'), ...more }
  let database: FreshDatabase
  before(async () => {
    database = await freshDatabase()
    env['DATABASE_URL'] = database.url
  })
  after(() => database.drop())
  return env
}

/** Runs `lock` in a transaction that is committed when the returned function is called. */
export async function holding(db: Db, lock: string, params: string[]): Promise<() => Promise<void>> {
  const { query, release } = await db.connect()
  await query('begin')
  await query(lock, params)
  return async () => {
    await query('commit')
    release()
  }
}

/** Waits until a statement of this database, with `part` in its text, has waited for a lock for so many seconds. */
export async function untilLocked(query: Query, part = '', seconds = 0): Promise<void> {
  await until(`a statement with "${part}" to wait for a lock`, async () => {
    const waiting = await query(
      `select 1 from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock' and strpos(query, $1) > 0
         and clock_timestamp() - query_start >= make_interval(secs => $2)`,
      [part, seconds],
    )
    return waiting.length > 0
  })
}

/** Waits until no connection to this database has an advisory lock of a class. PostgreSQL frees those of a killed process some moments later. */
export async function untilUnlocked(query: Query, lockClass: number): Promise<void> {
  await until(`the locks of class ${lockClass} to be free`, async () => {
    const held = await query(
      `select 1 from pg_locks where locktype = 'advisory' and classid = $1
         and database = (select oid from pg_database where datname = current_database())`,
      [lockClass],
    )
    return held.length === 0
  })
}

// The rate buckets of keys change with every request.
const USAGE = 'key_usage'

/** Every row of every table of ours as `table: {columns as JSON}` lines. */
export async function dump(db: Db): Promise<string> {
  const tables = await db.query(
    `select table_name as name from information_schema.tables
     where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE' and table_name <> '${USAGE}'
     order by 1`,
  )
  const lines: string[] = []
  for (const { name } of tables) {
    const rows = await db.query(`select row_to_json(t)::text as row from "${name}" t`)
    for (const { row } of rows) lines.push(`${name}: ${row}`)
  }
  return lines.join('\n')
}

// A server writes these every few seconds, whatever is requested.
const NOTED_BY_ITSELF = ['sync_readers', 'key_uses', 'record_writers']

/** The lines that only one of two dumps has, except those of some tables. */
export function differences(before: string, after: string, except: string[] = []): string[] {
  const [had, has] = [new Set(before.split('\n')), new Set(after.split('\n'))]
  const changed = [...[...had].filter((line) => !has.has(line)), ...[...has].filter((line) => !had.has(line))]
  const ignored = [...NOTED_BY_ITSELF, ...except]
  return changed.filter((line) => !ignored.includes(line.slice(0, line.indexOf(':'))))
}
