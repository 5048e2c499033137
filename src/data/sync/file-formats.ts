// Writes the rows of a table as a file: JSON lines, CSV or Parquet. Memory does not grow with the number of rows.
import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Column, ColumnType, Row, Table } from './tables.ts'
import type { Format } from './target.ts'

type Rows = Iterable<Row>

export async function writeTable(path: string, format: Format, table: Table, rows: Rows): Promise<void> {
  if (format === 'parquet') return writeParquet(path, table, rows)
  const file = createWriteStream(path, { mode: 0o600 })
  if (format === 'ndjson') return pipeline(Readable.from(jsonLines(rows)), file)
  const { stringify } = await import('csv-stringify')
  const columns = table.columns.map(({ name }) => name)
  const toCsv = stringify({ header: true, columns, cast: { boolean: String } })
  return pipeline(Readable.from(withJsonAsText(table, rows)), toCsv, file)
}

function* withJsonAsText({ columns }: Table, rows: Rows): Iterable<Row> {
  const json = columns.filter(({ type }) => type === 'json').map(({ name }) => name)
  for (const row of rows) {
    const texts = json.map((name) => [name, row[name] === null ? null : JSON.stringify(row[name])])
    yield { ...row, ...Object.fromEntries(texts) }
  }
}

const LINES_AT_ONCE = 500

function* jsonLines(rows: Rows): Iterable<string> {
  let lines: string[] = []
  for (const row of rows) {
    lines.push(`${JSON.stringify(row)}\n`)
    if (lines.length < LINES_AT_ONCE) continue
    yield lines.join('')
    lines = []
  }
  yield lines.join('')
}

// The number of rows in memory at once.
const ROW_GROUP = 20_000

const ELEMENTS: Record<ColumnType, object> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  integer: { type: 'INT64' },
  decimal: { type: 'DOUBLE' },
  boolean: { type: 'BOOLEAN' },
  instant: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MICROS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  },
  // As text, because not every reader knows the column type JSON.
  json: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
}

async function writeParquet(path: string, { columns }: Table, rows: Rows): Promise<void> {
  const { fileWriter, ParquetWriter } = await import('hyparquet-writer')
  const schema = [
    { name: 'root', num_children: columns.length },
    ...columns.map(({ name, type }) => ({ name, repetition_type: 'OPTIONAL', ...ELEMENTS[type] })),
  ]
  const writer = new ParquetWriter({ writer: fileWriter(path), schema: schema as never })
  let group: Row[] = []
  const flush = () => {
    const columnData = columns.map((column) => ({
      name: column.name,
      data: group.map((row) => parquetValue(column, row[column.name])),
    }))
    writer.write({ columnData, rowGroupSize: ROW_GROUP })
    group = []
  }
  for (const row of rows) {
    group.push(row)
    if (group.length === ROW_GROUP) flush()
  }
  flush()
  await writer.finish()
}

function parquetValue({ type }: Column, value: unknown): unknown {
  if (value === null || value === undefined) return null
  if (type === 'integer') return BigInt(value as number)
  if (type === 'instant') return micros(value as string)
  return type === 'json' ? JSON.stringify(value) : value
}

/** Microseconds since 1970 of our canonical form, with all six digits. */
function micros(instant: string): bigint {
  return BigInt(Date.parse(`${instant.slice(0, 19)}Z`)) * 1000n + BigInt(instant.slice(20, 26))
}
