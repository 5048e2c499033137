// Loads the script of a backup into empty tables, and checks that the script and its rows are complete.
import { pipeline } from 'node:stream/promises'
import { from as copyFrom } from 'pg-copy-streams'
import { Refusal } from '../../lib/errors.ts'
import { sqlState } from '../../lib/pg/errors.ts'
import { type Catalogue, columnList, MIGRATIONS_TABLE } from './catalogue.ts'
import { SEAL_LINE, type Seal } from './format.ts'
import type { Progress } from './progress.ts'
import { type CopyBlock, DamagedError, readCopyLine, readSequenceLine, type SequenceValue } from './script.ts'
import type { Session } from './session.ts'
import type { Source } from './source.ts'
import { qualified } from './sql-names.ts'

/** Returns how many rows each table got. `target` are the tables to load into. */
export async function load(
  session: Session,
  source: Source,
  target: Catalogue,
  progress: Progress,
): Promise<Record<string, number>> {
  const { script, header, format } = source
  const rows: Record<string, number> = {}
  let sealed = false
  for (let line = await script.line(); line !== undefined; line = await script.line()) {
    const block = readCopyLine(line)
    const value = readSequenceLine(line)
    // An archive holds the whole database: tables that are not ours are skipped.
    const ours = (block ?? value)?.schema === header.schema && block?.table !== MIGRATIONS_TABLE
    if (block && ours) {
      progress.at(block.table)
      rows[block.table] = await loadBlock(session, source, block, target)
    } else if (block) for await (const _ of script.rows());
    else if (value && ours) await restartSequence(session, value, target)
    else if (line.startsWith(SEAL_LINE)) {
      checkRows(script.checkSeal(line), rows)
      sealed = true
    }
  }
  if (format === 'tundish' && !sealed) throw new DamagedError('It is cut off.')
  const missing = header.tables.filter(({ name }) => rows[name] === undefined)
  if (missing.length > 0) throw new DamagedError(`The table ${missing[0]!.name} is missing.`)
  return rows
}

async function loadBlock(
  { client }: Session,
  { script }: Source,
  { table, columns }: CopyBlock,
  target: Catalogue,
): Promise<number> {
  const known = target.tables.find(({ name }) => name === table)
  const unknown = known ? columns.filter((column) => !known.columns.includes(column)) : []
  if (!known || unknown.length > 0)
    throw new Refusal(
      `The backup holds ${known ? `columns (${unknown.join(', ')}) of the` : 'the'} table ${table}, which no migration of this Tundish makes: make them in this database first.`,
    )
  const sink = client.query(copyFrom(`copy ${qualified(target.schema, table)} (${columnList(columns)}) from stdin`))
  try {
    await pipeline(script.rows(), sink)
  } catch (error) {
    // The rows were changed since the backup. PostgreSQL's message is not shown, because it would repeat them.
    if (/^2[23]/.test(sqlState(error) ?? '')) throw new DamagedError(`Rows of ${table} cannot be read.`)
    throw error
  }
  return sink.rowCount
}

/** Unlike setval, this is rolled back with the transaction: an interrupted restore must not reset a sequence. */
async function restartSequence({ query }: Session, { sequence, value, called }: SequenceValue, target: Catalogue) {
  if (!target.sequences.includes(sequence))
    throw new Refusal(`The backup holds the sequence ${sequence}, which no migration of this Tundish makes.`)
  const name = qualified(target.schema, sequence)
  const [row] = await query('select seqincrement as step from pg_sequence where seqrelid = $1::regclass', [name])
  await query(`alter sequence ${name} restart with ${called ? value + BigInt(row!.step!) : value}`)
}

function checkRows(seal: Seal, rows: Record<string, number>): void {
  const wrong = Object.keys({ ...seal.rows, ...rows }).filter((table) => seal.rows[table] !== rows[table])
  if (wrong.length > 0) throw new DamagedError(`Rows of ${wrong.join(', ')} are missing.`)
}
