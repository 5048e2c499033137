// tundish figures: sums by day, what customers cost and are worth; loads what was spent on advertising.
import type { Command } from 'commander'
import { Refusal } from '../../lib/errors.ts'
import { count } from '../../lib/text.ts'
import { action } from './command.ts'
import { addOperations, runOperation } from './operations.ts'
import { readTextFile } from './text-file.ts'

const HEADER = ['day', 'source', 'campaign', 'currency', 'amount'] as const
type Row = Record<(typeof HEADER)[number], string>

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
        const result = await runOperation('figures', 'loadSpend', app, { params, body: { rows: some } })
        for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += Number(result[name])
      }
      const days = new Set(rows.map(({ day }) => day)).size
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
function readSpend(text: string, name: string): Row[] {
  const lines = text.split(/\r?\n/).map((line) => cellsOf(line))
  const header = lines[0]!.map((cell) => cell.toLowerCase())
  const missing = HEADER.find((column) => column !== 'campaign' && !header.includes(column))
  if (missing !== undefined)
    throw new Refusal(`${name} has no column "${missing}": it must be a CSV that begins with "${HEADER.join(',')}".`)
  const rows = lines.slice(1).flatMap((cells, n) => {
    if (cells.every((cell) => cell === '')) return []
    if (cells.length !== header.length)
      throw new Refusal(`${name}:${n + 2} has ${cells.length} columns, but the first line has ${header.length}.`)
    return [Object.fromEntries(HEADER.map((column) => [column, cells[header.indexOf(column)] ?? ''])) as Row]
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
function* batchesOf(rows: Row[]): Iterable<Row[]> {
  let batch: Row[] = []
  for (const own of Map.groupBy(rows, ({ day, source }) => `${day} ${source}`).values()) {
    if (batch.length > 0 && batch.length + own.length > ROWS) {
      yield batch
      batch = []
    }
    batch.push(...own)
  }
  yield batch
}
