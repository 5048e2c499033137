// The rows of a report as text: named values, amounts with their decimals, CSV.
import { minorUnits } from '../../lib/money.ts'
import type { Row } from '../../lib/pg/row-bytes.ts'
import type { Shape } from '../../lib/shape/shape.ts'
import { instantFromPg } from '../../lib/time.ts'
import { feesIn } from '../../payments/billing/finance/sums.ts'

const INSTANTS = ['trx_created_at', 'paid_at', 'booked_at', 'service_from', 'service_to']

export type Texts = Record<string, string | null>

export const namesOf = ({ schema }: Shape) => Object.keys(schema.properties as object)

/** What the report prints of rows: amounts with all decimals of their currency, and a name for each currency of fees. */
export const textsOf = (shape: Shape, rows: readonly Row[]): Texts[] =>
  rows.map((row) => withDecimals(namedTexts(shape, row)))

/** The values as PostgreSQL sent them, so that no amount is a float; instants and booleans as the API writes them. */
function namedTexts(shape: Shape, row: Row): Texts {
  const properties = shape.schema.properties as Record<string, { type?: string }>
  const texts = row.texts()
  const written = (name: string, text: string) =>
    INSTANTS.includes(name) ? instantFromPg(text) : properties[name]!.type === 'boolean' ? String(text === 't') : text
  return Object.fromEntries(
    Object.keys(properties).map((name, n) => [name, texts[n] === null ? null : written(name, texts[n]!)]),
  )
}

const MONEY = [
  'amount',
  'gross',
  'refunded',
  'charged_back',
  'corrected',
  'net',
  'net_after_fees',
  'net_without_usd',
  'net_without_rate',
]

/** Amounts with all decimals of their currency. */
function withDecimals(row: Texts): Texts {
  const shown = Object.entries(row).flatMap(([name, value]) => {
    if (name === 'fees')
      return feesIn(value!).map(({ fee, fee_currency }) => [
        `fees_${fee_currency.toLowerCase()}`,
        pad(fee, fee_currency),
      ])
    if (name === 'fee') return [[name, pad(value, row.fee_currency)]]
    if (name.endsWith('_usd') && !name.includes('without')) return [[name, pad(value, 'USD')]]
    if (name.endsWith('_reported')) return [[name, pad(value, row.reporting_currency)]]
    return [[name, MONEY.includes(name) ? pad(value, row.currency_code) : value]]
  })
  return Object.fromEntries(shown)
}

export function pad(amount: string | null, currency: string | null | undefined): string | null {
  if (amount === null) return null
  const units = minorUnits(String(currency)) ?? 2
  const [whole, decimals = ''] = amount.split('.') as [string, string?]
  const kept = decimals.replace(/0+$/, '').padEnd(units, '0')
  return kept === '' ? whole : `${whole}.${kept}`
}

/** The rows as lines, below the line of the names. */
export const csv = (names: readonly string[], rows: readonly Texts[]) =>
  [names.join(','), ...csvLines(names, rows)].join('\n')

export const csvLines = (names: readonly string[], rows: readonly Texts[]) =>
  rows.map((row) => names.map((name) => field(row[name]!)).join(','))

/** As RFC 4180 says. A text that a spreadsheet would take for a formula gets an apostrophe in front. */
function field(value: string | null): string {
  if (value === null) return ''
  const text = /^[=@\t\r]|^[+-](?![0-9.]+$)/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
