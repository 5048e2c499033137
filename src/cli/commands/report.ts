// tundish report: the payments, refunds and chargebacks of a month, as sums or as signed rows.
import { type Command, Option } from 'commander'
import type { App } from '../../app.ts'
import { requireOrganization } from '../../core/tenants/tenants.ts'
import { ApiError, UsageError } from '../../lib/errors.ts'
import { type JsonNumber, numberText, readJson, readOwnJson } from '../../lib/json/read.ts'
import { minorUnits } from '../../lib/money.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Row } from '../../lib/pg/row-bytes.ts'
import type { Shape } from '../../lib/shape/shape.ts'
import { instantFromPg } from '../../lib/time.ts'
import {
  financeRow,
  financeRows,
  financeTotal,
  financeTotals,
  type Period,
  type PeriodGiven,
  placeOf,
  readPeriod,
} from '../../payments/billing/finance.ts'
import { action, type Result } from './command.ts'
import { table } from './text.ts'

interface Options {
  org: string
  month?: string
  from?: string
  to?: string
  rows?: boolean
  format: 'table' | 'csv' | 'json'
  json?: boolean
}

export function register(program: Command): void {
  const command = program
    .command('report')
    .description('Sum payments, refunds, chargebacks and fees by month, currency and provider; see docs/finance.md')
    .requiredOption('--org <id>', 'The organization')
    .option('--month <month>', 'A month in UTC, such as 2026-10')
    .option('--from <day>', 'Instead of a month: the first day; or a date-time, such as 2026-01-31T12:00:00Z')
    .option('--to <day>', 'The last day, which is included; or a date-time, which is excluded')
    .option('--rows', 'Print the rows with their signs instead of the sums')
    .addOption(
      new Option('--format <format>', 'Format of the output').choices(['table', 'csv', 'json']).default('table'),
    )
  action(command, (app, options: Options) => report(app, options))
}

async function report({ db }: App, { org, month, from, to, rows: asRows, format, json }: Options): Promise<Result> {
  const period = periodOf({ month, from, to })
  await requireOrganization(db.query, org)
  const [shape, rows] = asRows
    ? [financeRow, await allRows(db, org, period)]
    : [financeTotal, await financeTotals(db, org, period)]
  const name = asRows ? 'rows' : 'totals'
  const whole = { ...period, [name]: readOwnJson(shape.writeList(rows, '[', ']').toString()) }
  if (format === 'json' || json) return { json: whole, text: JSON.stringify(whole, null, 2) }
  const texts = rows.map((row) => withDecimals(namedTexts(shape, row)))
  if (format === 'csv') return { json: whole, text: csv(Object.keys(shape.schema.properties as object), texts) }
  const columns = asRows ? ROW_COLUMNS : TOTAL_COLUMNS
  return { json: whole, text: texts.length > 0 ? table(texts, columns) : 'No money moved in this period.' }
}

const TOTAL_COLUMNS = [
  'month',
  'currency_code',
  'psp',
  'payments',
  'gross',
  'refunds',
  'refunded',
  'chargebacks',
  'charged_back',
  'net',
  'fees',
  'fees_unknown',
  'net_after_fees',
]
const ROW_COLUMNS = ['paid_at', 'kind', 'amount', 'currency_code', 'fee', 'fee_currency', 'external_id', 'order_id']

const PAGE = 1000

async function allRows(db: Db, org: string, period: Period): Promise<Row[]> {
  const all: Row[] = []
  for (;;) {
    const last = all.at(-1)
    const page = await financeRows(db, org, period, { after: last && placeOf(last), limit: PAGE })
    all.push(...page)
    if (page.length < PAGE) return all
  }
}

const INSTANTS = ['trx_created_at', 'paid_at']

type Texts = Record<string, string | null>

/** The values as PostgreSQL sent them, so that no amount is a float; instants as the API writes them. */
function namedTexts(shape: Shape, row: Row): Texts {
  const names = Object.keys(shape.schema.properties as object)
  const texts = row.texts()
  return Object.fromEntries(
    names.map((name, n) => [name, INSTANTS.includes(name) ? instantFromPg(texts[n]!) : texts[n]!]),
  )
}

const MONEY = ['amount', 'gross', 'refunded', 'charged_back', 'net', 'net_after_fees']

/** Amounts with all decimals of their currency. */
function withDecimals(row: Texts): Texts {
  const shown = Object.entries(row).map(([name, value]) => {
    if (name === 'fees') return [name, feesText(value!)]
    if (name === 'fee') return [name, pad(value, row.fee_currency)]
    return [name, MONEY.includes(name) ? pad(value, row.currency_code) : value]
  })
  return Object.fromEntries(shown)
}

/** `USD -12.30; EUR -0.50`: no two currencies are added. */
function feesText(json: string): string | null {
  const fees = readJson(json, { exact: true }) as { fee: number | JsonNumber; fee_currency: string }[]
  const each = fees.map(({ fee, fee_currency }) => `${fee_currency} ${pad(numberText(fee), fee_currency)}`)
  return each.length > 0 ? each.join('; ') : null
}

function pad(amount: string | null, currency: string | null | undefined): string | null {
  if (amount === null) return null
  const units = minorUnits(String(currency)) ?? 2
  const [whole, decimals = ''] = amount.split('.') as [string, string?]
  const kept = decimals.replace(/0+$/, '').padEnd(units, '0')
  return kept === '' ? whole : `${whole}.${kept}`
}

function csv(names: string[], rows: Texts[]): string {
  return [names.join(','), ...rows.map((row) => names.map((name) => field(row[name]!)).join(','))].join('\n')
}

/** As RFC 4180 says. A text that a spreadsheet would take for a formula gets an apostrophe in front. */
function field(value: string | null): string {
  if (value === null) return ''
  const text = /^[=@\t\r]|^[+-](?![0-9.]+$)/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

function periodOf(given: PeriodGiven): Period {
  try {
    return readPeriod(given, { month: '--month', from: '--from', to: '--to' })
  } catch (error) {
    throw error instanceof ApiError ? new UsageError(error.message) : error
  }
}
