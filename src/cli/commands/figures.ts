// tundish figures: sums by day, what customers cost and are worth; loads what was spent on advertising.
import type { Command } from 'commander'
import { Refusal, UsageError } from '../../lib/errors.ts'
import { count } from '../../lib/text.ts'
import { action } from './command.ts'
import { addOperations, runOperation } from './operations.ts'
import { readTextFile } from './text-file.ts'

const HEADER = ['day', 'source', 'campaign', 'currency', 'amount'] as const
type Row = Record<(typeof HEADER)[number], string>
/** A row with the number of its line in the file. */
type Numbered = [row: Row, line: number]

// As many as an operation takes.
const ROWS = 5000

export async function register(program: Command): Promise<void> {
  const figures = program.command('figures').description('Show revenue, funnels and subscriptions by day')
  await addOperations(figures, ['figures spend'])

  action(
    figures
      .command('spend <file>')
      .description('Load what was spent on advertising: a CSV with the columns day,source,campaign,currency,amount')
      .requiredOption('--project <id>', 'The project'),
    async (app, file: string, { project }: { project: string }) => {
      const rows = readSpend(await readTextFile(file), file)
      const sum = { rows: 0, days: 0, replaced: 0, without_usd: 0 }
      for (const some of batchesOf(rows)) {
        const params = { project_id: project }
        const body = { rows: some.map(([row]) => row) }
        const result = await runOperation('figures', 'loadSpend', app, { params, body }).catch((error) => {
          throw atLine(error, file, some)
        })
        for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += Number(result[name])
      }
      const days = new Set(rows.map(([{ day }]) => day)).size
      const unknown =
        sum.without_usd > 0
          ? ` ${sum.without_usd} have no value in the reporting currency: load exchange rates first.`
          : ''
      return {
        json: { ...sum, days },
        text: `${count(sum.rows, 'amount')} of ${count(days, 'day')} loaded, ${sum.replaced} replaced.${unknown}`,
      }
    },
  )
}

/** The rows of a file. Throws a `Refusal` that names the line. */
function readSpend(text: string, name: string): Numbered[] {
  const lines = text.split(/\r?\n/).map((line) => cellsOf(line))
  const header = lines[0]!.map((cell) => cell.toLowerCase())
  const missing = HEADER.find((column) => column !== 'campaign' && !header.includes(column))
  if (missing !== undefined)
    throw new Refusal(`${name} has no column "${missing}": it must be a CSV that begins with "${HEADER.join(',')}".`)
  const rows = lines.slice(1).flatMap((cells, n) => {
    if (cells.every((cell) => cell === '')) return []
    if (cells.length !== header.length)
      throw new Refusal(`${name}:${n + 2} has ${cells.length} columns, but the first line has ${header.length}.`)
    const row = Object.fromEntries(HEADER.map((column) => [column, cells[header.indexOf(column)] ?? ''])) as Row
    return [[row, n + 2] satisfies Numbered]
  })
  if (rows.length === 0) throw new Refusal(`${name} has no amounts.`)
  return rows
}

/** The cells of a line of CSV; a quoted one may contain commas. */
const cellsOf = (line: string) =>
  [...line.matchAll(/(?:^|,)(?:\s*"((?:[^"]|"")*)"\s*|([^,]*))/g)].map(([, quoted, plain]) =>
    quoted === undefined ? plain!.trim() : quoted.replaceAll('""', '"'),
  )

/** Rows of one day and source stay together: a call replaces them. */
function* batchesOf(rows: Numbered[]): Iterable<Numbered[]> {
  let batch: Numbered[] = []
  for (const own of Map.groupBy(rows, ([{ day, source }]) => `${day} ${source}`).values()) {
    if (batch.length > 0 && batch.length + own.length > ROWS) {
      yield batch
      batch = []
    }
    batch.push(...own)
  }
  yield batch
}

// A request with one row names the column alone.
const ROW_PROBLEM = new RegExp(`^(?:rows\\[([0-9]+)\\][.])?((?:${HEADER.join('|')}) .*)$`, 's')

/** The error with the line of the file in place of the place in the request, which has the rows in another order. */
function atLine(error: unknown, name: string, batch: Numbered[]): unknown {
  if (!(error instanceof UsageError)) return error
  const [, n = '0', sentence] = ROW_PROBLEM.exec(error.message) ?? []
  return sentence === undefined ? error : new UsageError(`${name}:${batch[Number(n)]![1]}: ${sentence}`)
}
