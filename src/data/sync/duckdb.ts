// A copy in a DuckDB file, by an optional package: each batch and the state in one transaction.
import { hash } from 'node:crypto'
import { closeSync, existsSync, mkdirSync, openSync, readSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Refusal } from '../../lib/errors.ts'
import { inTransaction } from '../../lib/pg/in-transaction.ts'
import { type ColumnType, type Row, TABLES, type Table } from './tables.ts'
import {
  beginAgain,
  type Groups,
  LATER_COLUMNS,
  lackedTable,
  movedByAnother,
  quoted,
  refuseOthersTables,
  type State,
  sameState,
  type Target,
} from './target.ts'

const PACKAGE = '@duckdb/node-api'

const TYPES: Record<ColumnType, string> = {
  text: 'varchar',
  integer: 'bigint',
  decimal: 'double',
  boolean: 'boolean',
  instant: 'timestamptz',
  json: 'json',
}

// By default DuckDB uses four fifths of the machine's memory, and several threads, each with buffers. A batch needs a
// few megabytes, and the index of a table's key about 100 bytes per row.
const SETTINGS = { memory_limit: '256MB', threads: '1' }
// The smallest buffer for a line; the default of the package is 32 MB.
const SMALLEST_BUFFER = 1024 * 1024

/** The part of the package that is used. */
interface DuckDb {
  DuckDBInstance: {
    create(
      path: string,
      settings: Record<string, string>,
    ): Promise<{ connect(): Promise<Connection>; closeSync(): void }>
  }
}

interface Connection {
  run(sql: string, values?: unknown[]): Promise<unknown>
  runAndReadAll(sql: string): Promise<{ getRowObjectsJson(): Record<string, unknown>[] }>
  closeSync(): void
}

export async function duckdbTarget(path: string): Promise<Target> {
  const { DuckDBInstance } = await load()
  refuseOtherFile(path)
  const instance = await DuckDBInstance.create(path, SETTINGS).catch(refuse)
  const connection = refusing(await instance.connect())
  const folder = makeBatchFolder(path)

  async function state(): Promise<State | undefined> {
    const text = `select url, since, cursor, records, ${LATER_COLUMNS} from tundish_sync`
    const rows = (await connection.runAndReadAll(text)).getRowObjectsJson()
    return rows[0] && ({ ...rows[0], records: Number(rows[0]['records']) } as State)
  }

  /**
   * Rows are passed in a file of JSON lines: the package has no faster way for values of all types. JSON is passed as text,
   * because DuckDB would read its numbers as doubles.
   */
  async function storeRows(table: Table, groups: Groups): Promise<void> {
    const ids = [...groups.keys()].map((id) => `'${id.replaceAll("'", "''")}'`)
    await connection.run(`delete from ${quoted(table.name)} where ${quoted(table.group)} in (${ids})`)
    const rows = [...groups.values()].flat()
    const file = join(folder, `${table.name}.ndjson`)
    const lines = rows.map((row) => lineOf(table, row))
    writeFileSync(file, lines.join(''), { mode: 0o600 })
    const longest = lines.reduce((max, line) => Math.max(max, Buffer.byteLength(line)), SMALLEST_BUFFER)
    const columns = table.columns.map(
      ({ name, type }) => `${quoted(name)}: '${type === 'json' ? 'varchar' : TYPES[type]}'`,
    )
    const read = `read_json('${file}', format = 'newline_delimited', columns = {${columns}}, maximum_object_size = ${longest})`
    const names = table.columns.map(({ name }) => quoted(name))
    await connection.run(`insert into ${quoted(table.name)} (${names}) select ${names} from ${read}`)
    rmSync(file)
  }

  async function change(before: State | undefined, after: State, work: () => Promise<void>): Promise<void> {
    await inTransaction(connection.run, async () => {
      if (!sameState(await state(), before)) throw movedByAnother()
      await work()
      const { url, since, cursor, records } = after
      const text = `insert or replace into tundish_sync (one, url, since, cursor, records, ${LATER_COLUMNS}) values (1, $1, $2, $3, $4, $5, $6)`
      const later = LATER_COLUMNS.map((name) => after[name] ?? null)
      await connection.run(text, [url, since, cursor, records, ...later])
    })
  }

  return {
    async open() {
      const known = await readNames(connection)
      refuseOthersTables(path, known)
      await inTransaction(connection.run, async () => {
        await connection.run(`
          create table if not exists tundish_sync (
            one integer primary key, url varchar not null, since varchar, cursor varchar, records bigint not null)`)
        for (const name of LATER_COLUMNS)
          await connection.run(`alter table tundish_sync add column if not exists ${name} varchar`)
        for (const table of TABLES) await makeTable(connection, table)
        if (lackedTable(known)) await connection.run(beginAgain('tundish_sync'))
      })
    },
    state,
    store: (batch, before, after) =>
      change(before, after, async () => {
        for (const [table, groups] of batch) await storeRows(table, groups)
      }),
    forget: (voidFrom, before, after) =>
      change(before, after, async () => {
        const gone = `where updated_at >= '${voidFrom}'::timestamptz`
        for (const { name } of TABLES) await connection.run(`delete from ${quoted(name)} ${gone}`)
      }),
    async complete() {
      await connection.run('checkpoint')
    },
    async close() {
      connection.closeSync()
      instance.closeSync()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** A statement that fails, for a full disk or a table that its owner altered, becomes a sentence. */
function refusing(connection: Connection): Connection {
  return {
    run: (sql, values) => connection.run(sql, values).catch(refuse),
    runAndReadAll: (sql) => connection.runAndReadAll(sql).catch(refuse),
    closeSync: () => connection.closeSync(),
  }
}

// Their messages quote values of the row.
const ABOUT_A_ROW = /^(?:Constraint|Conversion|Invalid Input|Out of Range) Error(?=:)/

function refuse({ message }: Error): never {
  const reason = ABOUT_A_ROW.exec(message)?.[0] ?? message.split('\n')[0]
  throw new Refusal(`The file of the copy cannot be used (${reason}).`)
}

// Behind the checksum of the first block.
const MAGIC = { text: 'DUCK', at: 8 }

/** DuckDB opens some other files as well, such as JSON, and then keeps the tables in memory alone. */
function refuseOtherFile(path: string): void {
  if (!existsSync(path)) return
  const file = openSync(path, 'r')
  const found = Buffer.alloc(MAGIC.text.length)
  const length = readSync(file, found, 0, found.length, MAGIC.at)
  closeSync(file)
  if (length > 0 && found.toString('latin1') !== MAGIC.text)
    throw new Refusal(`The file of the copy cannot be used (${path} is not a DuckDB database).`)
}

/**
 * The folder of the batches that are being stored. Its name is that of the last run, so that what a killed run has left is
 * removed. DuckDB has locked the file of the copy: no other process uses the folder.
 */
function makeBatchFolder(path: string): string {
  const folder = join(tmpdir(), `tundish-sync-${hash('sha256', resolve(path)).slice(0, 16)}`)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { mode: 0o700 })
  return folder
}

function lineOf({ columns }: Table, row: Row): string {
  const values = columns.map(({ name, type }) => {
    const value = row[name] ?? null
    return [name, type === 'json' && value !== null ? JSON.stringify(value) : value]
  })
  return `${JSON.stringify(Object.fromEntries(values))}\n`
}

async function load(): Promise<DuckDb> {
  try {
    return await import(PACKAGE)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new Refusal(
      `duckdb: needs the package ${PACKAGE}, which is not installed. Run in the checkout: npm install --no-save --omit=dev ${PACKAGE}`,
    )
  }
}

async function readNames(connection: Connection): Promise<Set<string>> {
  const found = await connection.runAndReadAll('select table_name from information_schema.tables')
  return new Set(found.getRowObjectsJson().map((row) => String(row['table_name'])))
}

async function makeTable(connection: Connection, { name, columns, key }: Table): Promise<void> {
  const definitions = columns.map((column) => `${quoted(column.name)} ${TYPES[column.type]}`)
  await connection.run(`create table if not exists ${quoted(name)} (${definitions}, primary key (${key.map(quoted)}))`)
  for (const definition of definitions) {
    await connection.run(`alter table ${quoted(name)} add column if not exists ${definition}`)
  }
}
