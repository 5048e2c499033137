// The content of a table, which becomes HTML or CSV.
import type { Right } from '../../core/tenants/access.ts'
import { minorUnits } from '../../lib/money.ts'
import { minorMoney, money } from './format.ts'
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
}

export interface Cell {
  shown: Piece
  /** The plain value, for charts and CSV. */
  value?: string | number | null
}

export interface Table {
  caption: string
  columns: Column[]
  rows: (Cell | Piece)[][]
  /** Describes the periods that a chart marks because they are incomplete; undefined if all are complete. */
  incomplete?: string
}

/** The columns of an amount with its currency, which is a separate column in the CSV. */
export const amountColumns = (label: string): Column[] => [
  { label, number: true },
  { label: 'Currency', csvOnly: true },
]

interface Amount {
  amount: number
  currency_code: string
}

export const amountCells = ({ amount, currency_code }: Amount): (Cell | Piece)[] => [
  cell(money(amount, currency_code), amount),
  currency_code,
]

interface Price {
  /** In minor units. */
  price: number
  currency: string
}

/** The same for a price in minor units, with `more` shown behind it. */
export const minorCells = ({ price, currency }: Price, more?: Piece): (Cell | Piece)[] => [
  cell(html`${minorMoney(price, currency)}${more}`, Number(`${price}e-${minorUnits(currency) ?? 2}`)),
  currency,
]

export const isCell = (cell: Cell | Piece): cell is Cell => typeof cell === 'object' && cell !== null && 'shown' in cell

/** A cell whose plain value differs from what is shown. */
export const cell = (shown: Piece, value: string | number | null | undefined): Cell => ({ shown, value: value ?? null })

/** Writes a table as CSV (RFC 4180), with a quote before text that a spreadsheet would take for a formula. */
export function writeCsv({ columns, rows }: Table): string {
  const kept = columns.flatMap(({ bar, actions }, n) => (bar || actions ? [] : [n]))
  const lines = [kept.map((n) => columns[n]!.label), ...rows.map((row) => kept.map((n) => plain(row[n]!)))]
  return lines.map((line) => `${line.map(quoted).join(',')}\r\n`).join('')
}

function plain(one: Cell | Piece): string {
  return isCell(one) ? (one.value === undefined ? textOf(one.shown) : String(one.value ?? '')) : textOf(one)
}

function quoted(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) && !/^-?[0-9.]+$/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
