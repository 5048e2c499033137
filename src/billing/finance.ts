// The figures of a month for bookkeeping: signed rows of the payment report, and their sums by month, currency and provider.
import { ApiError } from '../lib/errors.ts'
import type { Db } from '../lib/pg/db.ts'
import type { Row } from '../lib/pg/row-bytes.ts'
import type { Statement } from '../lib/pg/types.ts'
import { decimal, instant, integer, shape, text } from '../lib/shape/shape.ts'
import { INCOMING, MOVES, moveOf } from '../records/payment-move.ts'

/** From the beginning of a day to the beginning of another, in UTC: `2026-10-01T00:00:00Z`. */
export interface Period {
  from: string
  to: string
}

export interface PeriodGiven {
  month?: string
  from?: string
  to?: string
}

const MOST_MONTHS = 36
const list = (names: readonly string[]) => names.map((name) => `'${name}'`).join(', ')
const sumOf = (sign: string, moves: readonly string[]) =>
  `coalesce(sum(${sign}m.amount) filter (where m.move in (${list(moves)})), 0)`
const countOf = (move: string) => `count(*) filter (where m.move = '${move}')`
const SIGNED = `case when m.move in (${list(INCOMING)}) then m.amount else -m.amount end`

const fees = decimal('What the provider kept, negative; null while the provider does not say. None says it yet.', {
  sql: 'null::numeric',
  nullable: true,
})

export const financeTotal = shape('FinanceTotal', 'm', {
  month: text('Month in UTC.', { example: '2026-10' }),
  currency_code: text('ISO 4217 code.', { example: 'USD' }),
  psp: text('Payment provider.', { example: 'simulator' }),
  payments: integer('How many payments succeeded.', { sql: countOf('sale'), example: 120 }),
  gross: decimal('Their sum, in major units.', { sql: sumOf('', ['sale']), example: 1240.5 }),
  refunds: integer('How many refunds succeeded.', { sql: countOf('refund'), example: 3 }),
  refunded: decimal('Their sum, negative; refunds that failed afterwards are taken out again.', {
    sql: `${sumOf('-', ['refund'])} + ${sumOf('', ['refund_failed'])}`,
    example: -30,
  }),
  refunds_failed: integer('How many refunds failed after they had succeeded.', {
    sql: countOf('refund_failed'),
    example: 0,
  }),
  chargebacks: integer('How many chargebacks took money.', { sql: countOf('chargeback'), example: 1 }),
  charged_back: decimal('Their sum, negative; what was given back after a won dispute is taken out again.', {
    sql: `${sumOf('-', ['chargeback'])} + ${sumOf('', ['chargeback_reversal'])}`,
    example: -10,
  }),
  chargeback_reversals: integer('How many chargebacks were given back.', {
    sql: countOf('chargeback_reversal'),
    example: 0,
  }),
  net: decimal('`gross` + `refunded` + `charged_back`.', {
    sql: `coalesce(sum(${SIGNED}) filter (where m.move is not null), 0)`,
    example: 1200.5,
  }),
  fees,
  without_money: integer('Rows that moved no money: declined payments, failed refunds, unknown types.', {
    sql: 'count(*) filter (where m.move is null)',
    example: 7,
  }),
})

export const financeRow = shape('FinanceRow', 'm', {
  trx_created_at: instant('When the outcome was known; as in the transaction report.'),
  trx_id: text('Identifier of the row in the transaction report.', { example: '0199f0a6-52f0-7d51-8f0f-6f3d1c1b6a55' }),
  order_id: text('The order.', { example: '0199f0a6-5310-7d51-8f0f-6f3d1c1b6a56' }),
  external_id: text('The customer, as the calling application names them.', { example: 'ada' }),
  project_id: text('The project of the customer.', { example: 'shop' }),
  kind: text('Which way the money went, and why.', { sql: 'm.move', enum: MOVES }),
  amount: decimal('In major units; negative when the merchant paid.', { sql: SIGNED, example: -10.5 }),
  currency_code: text('ISO 4217 code.', { example: 'USD' }),
  amount_usd: decimal('The same in US dollars; null without a rate.', {
    sql: SIGNED.replaceAll('m.amount', 'm.amount_usd'),
    nullable: true,
    example: -10.5,
  }),
  fees,
  psp: text('Payment provider.', { example: 'simulator' }),
  psp_merchant_id: text('Account there.', { nullable: true }),
  psp_transaction_id: text('Name of the movement there.', { nullable: true }),
})

const REPORT = `
  select r.*, ${moveOf('r')} as move, to_char(r.trx_created_at at time zone 'UTC', 'YYYY-MM') as month, c.project_id
  from report_transactions r
  join customers c on c.organization_id = r.organization_id and c.external_id = r.external_id
  where r.organization_id = $1`

/** Reads a month, or a first day and the day after the last. Throws a 400. */
export function readPeriod({ month, from, to }: PeriodGiven): Period {
  if (month !== undefined && from === undefined && to === undefined) {
    const first = dayOf('month', `${month}-01`)
    return { from: first, to: monthsAfter(first, 1) }
  }
  if (month !== undefined || from === undefined || to === undefined)
    throw new ApiError(400, 'invalid_value', 'Give month, or from and to.')
  const period = { from: dayOf('from', from), to: dayOf('to', to) }
  if (period.from >= period.to)
    throw new ApiError(400, 'invalid_value', `from must be before to, got ${from} and ${to}.`)
  if (period.to > monthsAfter(period.from, MOST_MONTHS))
    throw new ApiError(400, 'invalid_value', `from and to must be at most ${MOST_MONTHS} months apart.`)
  return period
}

function dayOf(name: string, day: string): string {
  const date = /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(day) ? new Date(`${day}T00:00:00Z`) : undefined
  // JavaScript takes February 30 for March 2.
  if (!date || Number.isNaN(date.getTime()) || date.toISOString().slice(0, 10) !== day || day < '0001')
    throw new ApiError(
      400,
      'invalid_value',
      name === 'month'
        ? `month must be a month such as 2026-10, got "${day.slice(0, -3)}".`
        : `${name} must be a day such as 2026-10-01, got "${day}".`,
    )
  return date.toISOString()
}

function monthsAfter(instant: string, months: number): string {
  const date = new Date(instant)
  return new Date(date.setUTCMonth(date.getUTCMonth() + months)).toISOString()
}

/** The sums of a period by month, currency and provider, in this order: rows of `financeTotal`. */
export const financeTotals = (db: Db, organizationId: string, { from, to }: Period): Promise<Row[]> =>
  db.read(TOTALS, [organizationId, from, to])

const TOTALS: Statement = {
  name: 'sum report rows',
  text: `
  select ${financeTotal.columns} from (${REPORT} and r.trx_created_at >= $2 and r.trx_created_at < $3) m
  group by m.month, m.currency_code, m.psp order by m.month, m.currency_code, m.psp`,
}

/**
 * Rows of `financeRow` of a period, oldest first, after the instant `after` of the last row of the page before: no two rows
 * of an organization share an instant.
 */
export const financeRows = (
  db: Db,
  organizationId: string,
  { from, to }: Period,
  page: { after: string | undefined; limit: number },
): Promise<Row[]> => db.read(ROWS, [organizationId, from, to, page.after ?? null, page.limit])

const ROWS: Statement = {
  name: 'list moved money',
  text: `
  select ${financeRow.columns} from (${REPORT}
    and r.trx_created_at >= $2 and r.trx_created_at < $3
    and r.trx_created_at > coalesce($4::timestamptz, '-infinity')) m
  where m.move is not null order by m.trx_created_at limit $5::int`,
}
