// The content of a table, which becomes HTML or CSV.
import type { Right } from '../../core/tenants/access.ts'
import { minorUnits } from '../../lib/money.ts'
import { mappedInTurns } from '../../lib/time-sliced.ts'
import { minorMoney, money, plainMoney } from './format.ts'
import { html, type Piece, textOf } from './html.ts'

export interface Column {
  label: string
  /** Numbers are aligned at their last digit. */
  number?: boolean
  /** A bar for the number in the next column; not in the CSV. */
  bar?: boolean
  /** Only in the CSV: the page shows it in another way. */
  csvOnly?: boolean
  /** Buttons, with the paths of their forms; not in the CSV. */
  actions?: readonly string[]
  /** Only for operators with this right. */
  right?: Right
  /** The sum of the other columns: a chart shows it in the tooltip and does not draw it. */
  sum?: boolean
  /** Whether the last row has the sum of the column. */
  total?: boolean
  /** Of a rate: the labels of the two columns whose sums the last row divides. */
  ratio?: readonly [part: string, whole: string]
  /** Of a rate of other numbers: its value in the last row. */
  ofAll?: number | null
  /** The value in the earlier period, which a chart draws as a faint line. */
  earlier?: boolean
}

export type Unit = 'usd' | 'percent' | 'number'

export interface Cell {
  shown: Piece
  /** The plain value, for charts and CSV. */
  value?: string | number | null
  /** The unit of a number. */
  unit?: Unit
  /** The id of what the cell names: a separate column in the CSV. */
  id?: string
}

export interface Table {
  caption: string
  columns: Column[]
  rows: (Cell | Piece)[][]
  /** The currency of cells whose unit is `usd`. */
  currency?: string
  /** Ids of what its rows are restricted to, such as a payout: they are in the name of the file. */
  of?: readonly string[]
  /** The number of rows after which a long list was cut for the CSV. */
  cutAfter?: number
  /** Describes the periods that a chart marks because they are incomplete; undefined if all are complete. */
  incomplete?: string
}

export const columns = (...labels: string[]): Column[] => labels.map((label) => ({ label }))
export const numbers = (...labels: string[]): Column[] => labels.map((label) => ({ label, number: true }))

export const csvColumns = (...labels: string[]): Column[] => labels.map((label) => ({ label, csvOnly: true }))
/** Columns of counts and amounts, which the last row adds up. */
export const sums = (...labels: string[]): Column[] => labels.map((label) => ({ label, number: true, total: true }))

/** The columns of an amount with its currency, which is a separate column in the CSV. */
export const amountColumns = (label: string): Column[] => [...numbers(label), ...csvColumns('Currency')]

interface Amount {
  amount: number | string
  currency_code: string
}

export const amountCells = ({ amount, currency_code }: Amount): (Cell | Piece)[] => [
  cell(money(amount, currency_code), plainMoney(amount, currency_code)),
  currency_code,
]

interface Price {
  /** In minor units. */
  price: number
  currency: string
}

/** The same for a price in minor units, with `more` shown behind it. */
export const minorCells = ({ price, currency }: Price, more?: Piece): (Cell | Piece)[] => [
  cell(html`${minorMoney(price, currency)}${more}`, plainMoney(`${price}e-${minorUnits(currency) ?? 2}`, currency)),
  currency,
]

export const isCell = (cell: Cell | Piece): cell is Cell => typeof cell === 'object' && cell !== null && 'shown' in cell

/** A cell whose plain value differs from what is shown. */
export const cell = (shown: Piece, value: string | number | null | undefined): Cell => ({ shown, value: value ?? null })

/** A cell with a name, and the id of what it names for the CSV. */
export const named = (shown: Piece, id: string, name: string = textOf(shown)): Cell => ({ shown, value: name, id })

// Without it, spreadsheets read the file in another code page.
const BYTE_ORDER_MARK = '\ufeff'

/** Writes a table as CSV (RFC 4180), with a quote before text that a spreadsheet would take for a formula. */
export async function* csvOf({ columns, rows, cutAfter, currency = 'USD' }: Table): AsyncGenerator<string> {
  const kept = columns.flatMap(({ bar, actions }, n) => (bar || actions ? [] : [n]))
  const withIds = new Set(kept.filter((n) => rows.some((row) => idOf(row[n]) !== undefined)))
  const head = kept.flatMap((n) => [columns[n]!.label, ...(withIds.has(n) ? [`${columns[n]!.label} ID`] : [])])
  const lines = mappedInTurns(rows, (row) =>
    lineOf(kept.flatMap((n) => [plain(row[n]!, currency), ...(withIds.has(n) ? [idOf(row[n]) ?? ''] : [])])),
  )
  yield BYTE_ORDER_MARK + lineOf(head)
  for await (const some of lines) yield some.join('')
  if (cutAfter !== undefined)
    yield lineOf([
      `The list goes on: this file has its first ${cutAfter} rows. Filter the list, or read it by the API.`,
    ])
}

const lineOf = (texts: string[]) => `${texts.map(quoted).join(',')}\r\n`

const idOf = (one: Cell | Piece): string | undefined => (isCell(one) ? one.id : undefined)

/** Money with the decimals of its currency, shares with four: computed values have sixteen digits. */
function plain(one: Cell | Piece, currency: string): string {
  if (!isCell(one)) return textOf(one)
  const { shown, value, unit } = one
  if (value === undefined) return textOf(shown)
  if (typeof value === 'number' && unit === 'usd') return plainMoney(value.toFixed(minorUnits(currency) ?? 2), currency)
  return typeof value === 'number' ? String(Math.round(value * 1e4) / 1e4) : (value ?? '')
}

/** Whether the table has amounts in the reporting currency. */
export const isInOneCurrency = ({ rows }: Table): boolean =>
  rows.some((row) => row.some((one) => isCell(one) && one.unit === 'usd'))

function quoted(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) && !/^-?[0-9.]+$/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
