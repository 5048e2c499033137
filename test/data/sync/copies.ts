// Reads a copy of any kind: its rows by table, each as an object with plain values.
import { createReadStream, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import pg from 'pg'
import type { Json } from '../../support/server.ts'

/** Why tests of DuckDB are skipped, if they are. */
export const noDuckDb = (() => {
  try {
    createRequire(import.meta.url).resolve('@duckdb/node-api')
    return undefined
  } catch {
    return '@duckdb/node-api is not installed'
  }
})()

/** Reads the rows of a table, with JSON columns parsed. */
export type ReadTable = (table: string) => Promise<Json[]>

const JSON_COLUMNS = ['value', 'tags', 'metadata', 'prices', 'query_params', 'integrations']

export function readerOf(to: string, format = ''): ReadTable {
  const isText = !to.startsWith('postgres') && format !== 'ndjson'
  return async (table) => {
    const rows = await rowsOf(to, format, table)
    return isText ? rows.map(parsed) : rows
  }
}

/** The text that a copy holds of the products' free metadata, without blanks between its tokens. */
export async function metadataTexts(to: string, format = ''): Promise<string[]> {
  if (format === 'ndjson') {
    const text = readFileSync(join(to, 'products.ndjson'), 'utf8')
    return [...text.matchAll(/"metadata":(.*?),"created_at"/g)].map(([, metadata]) => metadata!)
  }
  const rows = await rowsOf(to, format, 'products', '*, metadata::text as metadata')
  return rows.map(({ metadata }) => String(metadata).replaceAll(/(?<=[:,]) /g, ''))
}

async function rowsOf(to: string, format: string, table: string, columns = '*'): Promise<Json[]> {
  if (to.startsWith('sqlite:')) return sqlite(to.slice('sqlite:'.length), table)
  if (to.startsWith('duckdb:')) return duckdb(to.slice('duckdb:'.length), table)
  if (to.startsWith('postgres')) return postgres(to, table, columns)
  const path = join(to, `${table}.${format}`)
  if (format === 'ndjson') return lines(path)
  return format === 'csv' ? csv(path) : parquet(path)
}

function sqlite(path: string, table: string): Json[] {
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    return db.prepare(`select * from "${table}"`).all()
  } finally {
    db.close()
  }
}

async function duckdb(path: string, table: string): Promise<Json[]> {
  const { DuckDBInstance } = await import('@duckdb/node-api' as string)
  const instance = await DuckDBInstance.create(path, { access_mode: 'READ_ONLY' })
  const connection = await instance.connect()
  const rows = (await connection.runAndReadAll(`select * from "${table}"`)).getRowObjectsJson()
  connection.closeSync()
  instance.closeSync()
  return rows as Json[]
}

/** Runs statements in the file of a copy, as its owner may. */
export async function inDuckDb(path: string, statements: string): Promise<void> {
  const { DuckDBInstance } = await import('@duckdb/node-api' as string)
  const instance = await DuckDBInstance.create(path)
  const connection = await instance.connect()
  await connection.run(statements)
  connection.closeSync()
  instance.closeSync()
}

async function postgres(url: string, table: string, columns: string): Promise<Json[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(`select ${columns} from tundish."${table}"`)).rows
  } finally {
    await client.end()
  }
}

async function lines(path: string): Promise<Json[]> {
  const rows: Json[] = []
  for await (const line of createInterface({ input: createReadStream(path) })) rows.push(JSON.parse(line))
  return rows
}

/** Enough for the tests' own values, which have no line breaks. */
function csv(path: string): Json[] {
  const [head, ...rest] = readFileSync(path, 'utf8').trimEnd().split('\n')
  const names = head!.split(',')
  return rest.map((line) => {
    const fields = [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].map(([, field]) => field!)
    const values = fields.map((field) => (field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field))
    return Object.fromEntries(names.map((name, n) => [name, values[n] === '' ? null : values[n]]))
  })
}

async function parquet(path: string): Promise<Json[]> {
  return parquetReadObjects({ file: await asyncBufferFromFile(path) })
}

function parsed(row: Json): Json {
  const entries = Object.entries<Json>(row).map(([name, value]) => {
    const isText = typeof value === 'string' && JSON_COLUMNS.includes(name)
    return [name, isText ? JSON.parse(value) : value]
  })
  return Object.fromEntries(entries)
}
