// tundish report: the payments, refunds and chargebacks of a month, as sums or as signed rows.
import { type Command, Option } from 'commander'
import type { App } from '../../app.ts'
import { requireOrganization } from '../../core/tenants/tenants.ts'
import { ApiError, UsageError } from '../../lib/errors.ts'
import { readOwnJson } from '../../lib/json/read.ts'
import { minorUnits } from '../../lib/money.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Row } from '../../lib/pg/row-bytes.ts'
import type { Shape } from '../../lib/shape/shape.ts'
import { instantFromPg } from '../../lib/time.ts'
import { financeCurrency } from '../../payments/billing/finance/currency.ts'
import { type Period, type PeriodGiven, readPeriod } from '../../payments/billing/finance/period.ts'
import { closedMonths, financeRows, financeTotals, type Place } from '../../payments/billing/finance/report.ts'
import { financeRow, financeTotal } from '../../payments/billing/finance/shapes.ts'
import { feesIn, sumsOf, withoutRate } from '../../payments/billing/finance/sums.ts'
import { financeZone } from '../../payments/billing/finance/zone.ts'
import { action, type Result } from './command.ts'
import { table } from './text.ts'

interface Options {
  org: string
  month?: string
  from?: string
  to?: string
  rows?: boolean
  test?: boolean
  format: 'table' | 'csv' | 'json'
  json?: boolean
}

export function register(program: Command): void {
  const command = program
    .command('report')
    .description(
      'Sum payments, refunds, chargebacks and fees by month, currency and merchant account; see docs/finance.md',
    )
    .requiredOption('--org <id>', 'The organization')
    .option('--month <month>', 'A month, such as 2026-10')
    .option('--from <day>', 'Instead of a month: the first day')
    .option('--to <day>', 'The last day, which is included')
    .option('--test', 'Test money instead of real money; the two are never added')
    .option('--rows', 'Print the rows with their signs instead of the sums')
    .addOption(
      new Option('--format <format>', 'Format of the output').choices(['table', 'csv', 'json']).default('table'),
    )
  action(command, (app, options: Options) => report(app, options))
}

async function report({ db }: App, options: Options): Promise<Result> {
  const { org, month, from, to, rows: asRows, test = false, format, json } = options
  const period = periodOf({ month, from, to })
  await requireOrganization(db.query, org)
  const which = { ...period, test }
  const [shape, rows] = asRows
    ? [financeRow, await allRows(db, org, which)]
    : [financeTotal, await financeTotals(db, org, which)]
  const name = asRows ? 'rows' : 'totals'
  const closed = await closedMonths(db, org, period)
  const sums = asRows ? {} : sumsOf(rows)
  const reporting_currency = await financeCurrency(db.query, org)
  const time_zone = await financeZone(db.query, org)
  const whole = {
    ...which,
    time_zone,
    reporting_currency,
    closed,
    ...sums,
    [name]: readOwnJson(shape.writeList(rows, '[', ']').toString()),
  }
  if (format === 'json' || json) return { json: whole, text: JSON.stringify(whole, null, 2) }
  const texts = withFeeColumns(rows.map((row) => withDecimals(namedTexts(shape, row))))
  const names = Object.keys(shape.schema.properties as object).flatMap((one) =>
    one === 'fees' ? feeNames(texts) : [one],
  )
  if (format === 'csv') return { json: whole, text: csv(names, texts) }
  const columns = asRows
    ? rowColumns(texts)
    : TOTAL_COLUMNS.flatMap((one) => (one === 'fees' ? feeNames(texts) : [one]))
  const days = time_zone === 'UTC' ? '' : `Days and months in ${time_zone}.`
  if (texts.length === 0) return { json: whole, text: ['No money moved in this period.', days].join(' ').trim() }
  const summed = asRows ? '' : summary(sumsOf(rows), reporting_currency)
  const below = [summed, days].filter(Boolean).join('\n')
  return { json: whole, text: `${table(texts, columns)}${below && `\n\n${below}`}` }
}

/** All in the reporting currency, and what has no rate and so is not in it. */
function summary(all: ReturnType<typeof sumsOf>, currency: string): string {
  const sums = Object.entries(all.reporting).map(([name, { text }]) => `${name} ${pad(text, currency)}`)
  const missing = withoutRate(all).map((one) => `${pad(one.amount, one.currency)} ${one.currency}`)
  return `All in ${currency}: ${sums.join(', ')}.${missing.length > 0 ? `\nWithout a rate, and so not in it: ${missing.join(', ')}.` : ''}`
}

/** Fees have a column for each of their currencies: `fees_usd`, `fees_eur`. */
const feeNames = (rows: Texts[]) =>
  [...new Set(rows.flatMap((row) => Object.keys(row).filter((name) => /^fees_[a-z]{3}$/.test(name))))].sort()

/** Every row has all columns of fees. */
function withFeeColumns(rows: Texts[]): Texts[] {
  const none = Object.fromEntries(feeNames(rows).map((name) => [name, null]))
  return rows.map((row) => ({ ...none, ...row }))
}

const TOTAL_COLUMNS = [
  'month',
  'currency_code',
  'psp',
  'psp_merchant_id',
  'payments',
  'gross',
  'refunds',
  'refunded',
  'chargebacks',
  'charged_back',
  'corrected',
  'net',
  'fees',
  'fees_unknown',
  'net_after_fees',
  'net_reported',
  'net_without_rate',
]
const ROW_COLUMNS = [
  'paid_at',
  'kind',
  'amount',
  'currency_code',
  'fee',
  'fee_currency',
  'amount_reported',
  'psp_merchant_id',
  'external_id',
  'order_id',
]

/** Corrections of closed months are marked where there are any. */
const rowColumns = (rows: Texts[]) =>
  rows.some(({ correction }) => correction === 'true') ? [...ROW_COLUMNS, 'correction'] : ROW_COLUMNS

const PAGE = 1000

async function allRows(db: Db, org: string, which: Period & { test: boolean }): Promise<Row[]> {
  const all: Row[] = []
  let after: Place | undefined
  for (;;) {
    const { rows, places } = await financeRows(db, org, which, { after, limit: PAGE })
    all.push(...rows)
    if (rows.length < PAGE) return all
    after = places.at(-1)
  }
}

const INSTANTS = ['trx_created_at', 'paid_at', 'booked_at', 'service_from', 'service_to']

type Texts = Record<string, string | null>

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
