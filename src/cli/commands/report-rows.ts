// tundish report --rows: written page by page, because the rows of years do not fit into memory.
import { readOwnJson } from '../../lib/json/read.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Row } from '../../lib/pg/row-bytes.ts'
import { printable } from '../../lib/text.ts'
import type { Period } from '../../payments/billing/finance/period.ts'
import { financeRows, type Place } from '../../payments/billing/finance/report.ts'
import { financeRow } from '../../payments/billing/finance/shapes.ts'
import type { Result } from './command.ts'
import { csvLines, namesOf, textsOf } from './report-texts.ts'

const PAGE = 1000

type Pages = AsyncIterable<Row[]>

export async function* pagesOfRows(db: Db, org: string, which: Period & { test: boolean }): AsyncGenerator<Row[]> {
  let after: Place | undefined
  for (;;) {
    const { rows, places } = await financeRows(db, org, which, { after, limit: PAGE })
    if (rows.length > 0) yield rows
    if (rows.length < PAGE) return
    after = places.at(-1)
  }
}

/** Writes each text as soon as there is room. Nothing more is written after an error, which `watchOutput` reports. */
export async function writePages(texts: AsyncIterable<string>): Promise<Result> {
  for await (const text of texts) {
    const error = await new Promise((resolve) => process.stdout.write(printable(text), resolve))
    if (error) break
  }
  return { json: undefined, text: '' }
}

export async function* csvOf(pages: Pages): AsyncGenerator<string> {
  const names = namesOf(financeRow)
  yield `${names.join(',')}\n`
  for await (const rows of pages) yield `${csvLines(names, textsOf(financeRow, rows)).join('\n')}\n`
}

/** One document: the rows are the last member of `head`. */
export async function* jsonOf(head: object, pages: Pages): AsyncGenerator<string> {
  yield `${JSON.stringify(head).slice(0, -'}'.length)},"rows":[`
  yield* joined(pages, (row) => JSON.stringify(row))
  yield ']}\n'
}

/** The same with an indentation of two spaces. */
export async function* indentedJsonOf(head: object, pages: Pages): AsyncGenerator<string> {
  const whole = JSON.stringify({ ...head, rows: [] }, null, 2)
  const before = whole.slice(0, -']\n}'.length)
  yield before
  let isEmpty = true
  for await (const text of joined(pages, (row) => `\n${JSON.stringify(row, null, 2)}`)) {
    isEmpty = false
    yield text.replaceAll('\n', '\n    ')
  }
  yield isEmpty ? ']\n}\n' : '\n  ]\n}\n'
}

async function* joined(pages: Pages, write: (row: unknown) => string): AsyncGenerator<string> {
  let before = ''
  for await (const rows of pages) {
    const values = readOwnJson(financeRow.writeList(rows, '[', ']').toString()) as unknown[]
    yield before + values.map(write).join(',')
    before = ','
  }
}
