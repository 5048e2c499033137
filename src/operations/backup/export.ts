// Writes our own format: one snapshot of every table as a SQL script of COPY blocks, sealed with its SHA-256, compressed.
import { createHash } from 'node:crypto'
import { Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress } from 'node:zlib'
import { to as copyTo } from 'pg-copy-streams'
import { columnList, type Table } from './catalogue.ts'
import { HEADER_LINE, type Header, SEAL_LINE, type Seal } from './format.ts'
import type { Progress } from './progress.ts'
import type { Session } from './session.ts'
import { qualified } from './sql-names.ts'

/** Writes the script to `output`, one chunk at a time, and returns how many rows each table has. */
export async function exportTo(
  output: Writable,
  session: Session,
  header: Header,
  options: { signal: AbortSignal; progress: Progress },
): Promise<Record<string, number>> {
  const rows: Record<string, number> = {}
  const compress = createZstdCompress({ params: { [constants.ZSTD_c_checksumFlag]: 1 } })
  const script = Readable.from(sealed(writeScript(session, header, rows, options.progress), rows))
  await pipeline(script, compress, output, { signal: options.signal })
  return rows
}

async function* writeScript(session: Session, header: Header, rows: Record<string, number>, progress: Progress) {
  yield Buffer.from(`${HEADER_LINE}${JSON.stringify(header)}\n`)
  for (const table of header.tables) {
    progress.at(table.name)
    yield* writeTable(session, header.schema, table, rows, progress)
  }
  // Read last, because snapshots do not include sequences: then no row has a number that is still to be issued.
  for (const name of header.sequences) {
    const sequence = qualified(header.schema, name)
    const [row] = await session.query(`select last_value, is_called from ${sequence}`)
    const { last_value, is_called } = row!
    const called = is_called === 't'
    yield Buffer.from(`SELECT pg_catalog.setval('${sequence.replaceAll("'", "''")}', ${last_value}, ${called});\n`)
  }
}

async function* writeTable(
  { client }: Session,
  schema: string,
  { name, columns }: Table,
  rows: Record<string, number>,
  progress: Progress,
) {
  const list = columnList(columns)
  yield Buffer.from(`COPY ${qualified(schema, name)} (${list}) FROM stdin;\n`)
  // COPY reads a partitioned table only through a query.
  const data = client.query(copyTo(`copy (select ${list} from ${qualified(schema, name)}) to stdout`))
  for await (const chunk of data as AsyncIterable<Buffer>) {
    progress.moved(chunk.length)
    yield chunk
  }
  rows[name] = data.rowCount
  yield Buffer.from('\\.\n')
}

async function* sealed(script: AsyncIterable<Buffer>, rows: Record<string, number>) {
  const hash = createHash('sha256')
  for await (const chunk of script) {
    hash.update(chunk)
    yield chunk
  }
  const seal: Seal = { rows, sha256: hash.digest('hex') }
  yield Buffer.from(`${SEAL_LINE}${JSON.stringify(seal)}\n`)
}
