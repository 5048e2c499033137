// Temporary tables of one import, one for each kind: rows are copied there while the next ones are read.
import { finished } from 'node:stream/promises'
import { from as copyFrom } from 'pg-copy-streams'
import type { BadLine } from '../../core/records/import/fields.ts'
import type { Kind } from '../../core/records/record.ts'
import { KINDS } from '../../core/records/records.ts'
import { copyRow, copyText } from '../../lib/pg/copy-text.ts'
import { columnsOf, type Row } from './row.ts'
import type { Connection } from './session.ts'

/** The table with the staged rows of a kind; it belongs to the connection and ends with it. */
export const staged = ({ name }: Kind) => `import_${name}`

/**
 * The rejected lines: `part` 0 of each has the reason, and the bytes are there if lines are kept. `step` is 0 for lines that
 * are bad in themselves, and grows along the references of those that need a bad one.
 */
export const REJECTED = 'import_rejected'

// One COPY costs as much as some rows, so rows are batched. Batches four times as large grow the heap by 60 MB, and are no faster.
const BATCH_CHARACTERS = 1 << 16

// The most bytes that UTF-8 needs for one UTF-16 unit of a JavaScript string.
const BYTES_A_UNIT = 3

interface Table {
  create: string
  copy: string
  batch: string
  rows: number
  merged: boolean
  needsStored: boolean
}

export interface StagedKind {
  kind: Kind
  rows: number
  /** Whether some lines have only the fields that change. */
  merged: boolean
  /** Whether some of these lack a field that a new record needs. */
  needsStored: boolean
}

export class Staging {
  private readonly connection: Connection
  private readonly keepLines: boolean
  private readonly tables = new Map<string, Table>()
  private bytes = Buffer.allocUnsafeSlow(2 * BATCH_CHARACTERS * BYTES_A_UNIT)
  private sending: Promise<void> = Promise.resolve()
  private failure: unknown
  /** How many lines were rejected while they were read. */
  badLines = 0

  /** With `keepLines` the original lines are staged, too, so that rejected ones can be returned. */
  constructor(connection: Connection, keepLines: boolean) {
    this.connection = connection
    this.keepLines = keepLines
  }

  /** `source` and `line` say where the row comes from, both counted from 1; `original` is the line itself. */
  add({ kind, values, given, needsStored }: Row, source: number, line: number, original: string): void {
    const table = this.tables.get(kind.name) ?? this.open(kind.name, kindTable(kind))
    table.rows += 1
    table.merged ||= given !== null
    table.needsStored ||= needsStored
    table.batch += `${copyRow([...values, given, source, line, this.keepLines ? original : null])}\n`
  }

  /** A line that is too long for memory has several parts, numbered from 0. */
  reject(source: number, line: number, { code, message }: BadLine, bytes: () => Buffer, part = 0): void {
    if (part === 0) this.badLines += 1
    const kept = this.keepLines ? `\\\\x${bytes().toString('hex')}` : '\\N'
    if (part === 0 || this.keepLines)
      this.rejected().batch += `${source}\t${line}\t${part}\t${code}\t${copyText(message)}\t${kept}\n`
  }

  /** Sends the batches that are full, each while the next ones are filled. */
  async drain(): Promise<void> {
    for (const [name, { batch }] of this.tables) if (batch.length >= BATCH_CHARACTERS) await this.send(name)
  }

  /** Sends the rest, and returns the kinds that have rows, in the order in which they are written. */
  async finish(): Promise<StagedKind[]> {
    this.rejected()
    for (const name of this.tables.keys()) await this.send(name)
    await this.allSent()
    // Autovacuum does not analyze temporary tables, and without statistics plans are made for a few rows.
    const kinds = KINDS.flatMap((kind) => {
      const table = this.tables.get(kind.name)
      if (!table) return []
      const { rows, merged, needsStored } = table
      return [{ kind, rows, merged, needsStored }]
    })
    for (const { kind } of kinds) await this.connection.query(analyze(kind))
    return kinds
  }

  private rejected(): Table {
    return this.tables.get('rejected') ?? this.open('rejected', REJECTED_TABLE)
  }

  private open(name: string, { create, copy }: Pick<Table, 'create' | 'copy'>): Table {
    const table = { create, copy, batch: '', rows: 0, merged: false, needsStored: false }
    this.tables.set(name, table)
    return table
  }

  private async send(name: string): Promise<void> {
    await this.allSent()
    const table = this.tables.get(name)!
    const { create, copy } = table
    const batch = this.encode(table.batch)
    table.batch = ''
    table.create = ''
    this.sending = this.transfer(create, copy, batch).catch((error) => {
      this.failure = error
    })
  }

  /** Reuses one buffer, because the batch before has been sent. A new buffer for each batch made the process grow for hours. */
  private encode(text: string): Buffer {
    const most = text.length * BYTES_A_UNIT
    if (most > this.bytes.length) this.bytes = Buffer.allocUnsafeSlow(most)
    return this.bytes.subarray(0, this.bytes.write(text))
  }

  private async allSent(): Promise<void> {
    await this.sending
    if (this.failure !== undefined) throw this.failure
  }

  private async transfer(create: string, copy: string, batch: Buffer): Promise<void> {
    if (create !== '') await this.connection.query(create)
    if (batch.length === 0) return
    const stream = this.connection.client.query(copyFrom(copy))
    stream.end(batch)
    await finished(stream)
  }
}

function kindTable(kind: Kind): Pick<Table, 'create' | 'copy'> {
  const columns = columnsOf(kind).map(({ name }) => name)
  return {
    create: createStaged(kind),
    copy: `copy ${staged(kind)} (${columns.join(', ')}, given, source, line, original) from stdin (encoding 'UTF8')`,
  }
}

/** SQL that creates the table for rows of a kind. The columns have the types and collations of those that the rows go to. */
export function createStaged(kind: Kind, onCommit = ''): string {
  return `
    create temp table ${staged(kind)} ${onCommit} as
    select ${columnsOf(kind)
      .map(({ name }) => name)
      .join(
        ', ',
      )}, ''::text as given, 0 as source, 0::bigint as line, '' as original, false as erased from ${kind.table}
    with no data`
}

export const createRejected = (onCommit = '') =>
  `create temp table ${REJECTED} (source int, line bigint, part int, code text, reason text, bytes bytea, step int default 0) ${onCommit}`

/** By the columns that statements look at: with all of them it takes four times as long. */
function analyze(kind: Kind): string {
  const columns = new Set([...kind.key, ...Object.keys(kind.references ?? {}), ...(kind.kept ?? [])])
  return `analyze ${staged(kind)} (${[...columns].join(', ')})`
}

const REJECTED_TABLE = {
  create: createRejected(),
  copy: `copy ${REJECTED} (source, line, part, code, reason, bytes) from stdin (encoding 'UTF8')`,
}
