// tundish report: the payments, refunds and chargebacks of a month, as sums or as signed rows.
import { type Command, Option } from 'commander'
import type { App } from '../../app.ts'
import { requireOrganization } from '../../core/tenants/tenants.ts'
import { ApiError, UsageError } from '../../lib/errors.ts'
import { readOwnJson } from '../../lib/json/read.ts'
import type { Row } from '../../lib/pg/row-bytes.ts'
import { financeCurrency } from '../../payments/billing/finance/currency.ts'
import { type Period, type PeriodGiven, readPeriod } from '../../payments/billing/finance/period.ts'
import { closedMonths, financeTotals } from '../../payments/billing/finance/report.ts'
import { financeRow, financeTotal } from '../../payments/billing/finance/shapes.ts'
import { sumsOf, withoutRate } from '../../payments/billing/finance/sums.ts'
import { financeZone } from '../../payments/billing/finance/zone.ts'
import { action, type Result } from './command.ts'
import { csvOf, indentedJsonOf, jsonOf, pagesOfRows, writePages } from './report-rows.ts'
import { csv, namesOf, pad, type Texts, textsOf } from './report-texts.ts'
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
  const head = {
    ...which,
    time_zone: await financeZone(db.query, org),
    reporting_currency: await financeCurrency(db.query, org),
    closed: await closedMonths(db, org, period),
  }
  if (!asRows) return totalsOf(head, await financeTotals(db, org, which), options)
  const pages = pagesOfRows(db, org, which)
  if (json) return writePages(jsonOf(head, pages))
  if (format === 'json') return writePages(indentedJsonOf(head, pages))
  if (format === 'csv') return writePages(csvOf(pages))
  const texts = (await Array.fromAsync(pages, (rows) => textsOf(financeRow, rows))).flat()
  const days = daysIn(head)
  return {
    json: undefined,
    text: texts.length === 0 ? nothing(days) : table(texts, rowColumns(texts)) + paragraph(days),
  }
}

interface Head {
  time_zone: string
  reporting_currency: string
}

function totalsOf(head: Head, rows: Row[], { format }: Options): Result {
  const sums = sumsOf(rows)
  const whole = { ...head, ...sums, totals: readOwnJson(financeTotal.writeList(rows, '[', ']').toString()) }
  if (format === 'json') return { json: whole, text: JSON.stringify(whole, null, 2) }
  const texts = withFeeColumns(textsOf(financeTotal, rows))
  const withFees = (names: string[]) => names.flatMap((one) => (one === 'fees' ? feeNames(texts) : [one]))
  if (format === 'csv') return { json: whole, text: csv(withFees(namesOf(financeTotal)), texts) }
  const days = daysIn(head)
  if (texts.length === 0) return { json: whole, text: nothing(days) }
  const below = [summary(sums, head.reporting_currency), days].filter(Boolean).join('\n')
  return { json: whole, text: table(texts, withFees(TOTAL_COLUMNS)) + paragraph(below) }
}

const daysIn = ({ time_zone }: Head) => (time_zone === 'UTC' ? '' : `Days and months in ${time_zone}.`)
const nothing = (days: string) => ['No money moved in this period.', days].join(' ').trim()
const paragraph = (text: string) => text && `\n\n${text}`

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
  'psp',
  'psp_merchant_id',
  'external_id',
  'order_id',
]

/** Corrections of closed months are marked where there are any. */
const rowColumns = (rows: Texts[]) =>
  rows.some(({ correction }) => correction === 'true') ? [...ROW_COLUMNS, 'correction'] : ROW_COLUMNS

function periodOf(given: PeriodGiven): Period {
  try {
    return readPeriod(given, { month: '--month', from: '--from', to: '--to' })
  } catch (error) {
    throw error instanceof ApiError ? new UsageError(error.message) : error
  }
}
