// The figures of a month for bookkeeping: signed rows of the payment report, and their sums by month, currency and provider.

import { INCOMING, MOVES, moveOf } from '../../core/records/payment-move.ts'
import { paidAt } from '../../core/records/payment-time.ts'
import { withAndWithoutPeople } from '../../core/records/without-people.ts'
import { addDays, readDay, readMonth } from '../../lib/days.ts'
import { ApiError } from '../../lib/errors.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Row } from '../../lib/pg/row-bytes.ts'
import type { Statement } from '../../lib/pg/types.ts'
import { Type } from '../../lib/shape/schema.ts'
import { decimal, instant, integer, json, type Shape, shape, text } from '../../lib/shape/shape.ts'
import { shorten } from '../../lib/text.ts'
import { instantFromPg, readInstant, TimeError } from '../../lib/time.ts'

/** From an instant to another, which is excluded: `2026-10-01T00:00:00.000Z`. */
export interface Period {
  from: string
  to: string
}

export interface PeriodGiven {
  month?: string
  from?: string
  to?: string
}

const MAX_MONTHS = 36
const list = (names: readonly string[]) => names.map((name) => `'${name}'`).join(', ')
const sumOf = (sign: string, moves: readonly string[]) =>
  `coalesce(sum(${sign}m.amount) filter (where m.move in (${list(moves)})), 0)`
const countOf = (move: string) => `count(*) filter (where m.move = '${move}')`
const SIGNED = `case when m.move in (${list(INCOMING)}) then m.amount else -m.amount end`

const movements = (which: string) => `count(*) filter (where m.move is not null and ${which})`

const feeSum = Type.Object(
  {
    fee: Type.Number({ description: 'Sum in major units, negative.', examples: [-42.3] }),
    fee_currency: Type.String({ description: 'ISO 4217 code.', examples: ['USD'] }),
  },
  { title: 'FeeSum', additionalProperties: false },
)

export const financeTotal = shape('FinanceTotal', 'm', {
  month: text('Month in UTC.', { example: '2026-10' }),
  currency_code: text('ISO 4217 code.', { example: 'USD' }),
  psp: text('Payment provider.', { example: 'simulator' }),
  payments: integer('How many payments succeeded.', { sql: countOf('sale'), example: 120 }),
  gross: decimal('Their sum, in major units.', { sql: sumOf('', ['sale']), example: 1240.5 }),
  refunds: integer('How many refunds succeeded.', { sql: countOf('refund'), example: 3 }),
  refunded: decimal('Their sum, negative, without refunds that failed afterwards.', {
    sql: `${sumOf('-', ['refund'])} + ${sumOf('', ['refund_failed'])}`,
    example: -30,
  }),
  refunds_failed: integer('How many refunds failed after they had succeeded.', {
    sql: countOf('refund_failed'),
    example: 0,
  }),
  chargebacks: integer('How many chargebacks took money.', { sql: countOf('chargeback'), example: 1 }),
  charged_back: decimal('Their sum, negative, without what was returned after a dispute.', {
    sql: `${sumOf('-', ['chargeback'])} + ${sumOf('', ['chargeback_reversal'])}`,
    example: -10,
  }),
  chargeback_reversals: integer('How many chargebacks were returned.', {
    sql: countOf('chargeback_reversal'),
    example: 0,
  }),
  net: decimal('`gross` + `refunded` + `charged_back`.', {
    sql: `coalesce(sum(${SIGNED}) filter (where m.move is not null), 0)`,
    example: 1200.5,
  }),
  fees: json(
    'What the provider kept, negative, by the currency of its balance, which may be another than that of the payments.',
    {
      sql: "coalesce(f.fees, '[]')",
      schema: Type.Array(feeSum),
      example: [{ fee: -42.3, fee_currency: 'USD' }],
    },
  ),
  fees_unknown: integer('How many of these movements have a fee that is not known; 0.00 is a known fee.', {
    sql: movements('m.fee is null'),
    example: 0,
  }),
  net_after_fees: decimal('`net` + `fees`; null unless every fee is known and in `currency_code`.', {
    sql: `case when ${movements('(m.fee_currency = m.currency_code) is not true')} = 0
      then coalesce(sum(${SIGNED} + m.fee), 0) end`,
    nullable: true,
    example: 1158.2,
  }),
  without_money: integer('Rows that moved no money: declined payments, failed refunds, unknown types.', {
    sql: 'count(*) filter (where m.move is null)',
    example: 7,
  }),
})

export const [financeRow, financeRowWithoutPeople] = withAndWithoutPeople('FinanceRow', 'm', ['external_id'], {
  trx_created_at: instant('When the row was added to the transaction report.'),
  trx_id: text('Identifier of the row in the transaction report.', { example: '0199f0a6-52f0-7d51-8f0f-6f3d1c1b6a55' }),
  order_id: text('The order.', { example: '0199f0a6-5310-7d51-8f0f-6f3d1c1b6a56' }),
  external_id: text('The caller’s id of the customer.', { example: 'ada' }),
  project_id: text('The project of the customer.', { example: 'shop' }),
  kind: text('Kind of movement.', { sql: 'm.move', enum: MOVES }),
  amount: decimal('In major units; negative when the merchant paid.', { sql: SIGNED, example: -10.5 }),
  currency_code: text('ISO 4217 code.', { example: 'USD' }),
  amount_usd: decimal('The same in US dollars; null without a rate.', {
    sql: SIGNED.replaceAll('m.amount', 'm.amount_usd'),
    nullable: true,
    example: -10.5,
  }),
  fee: decimal('What the provider kept, negative; positive if it returned a fee; null while it is not known.', {
    sql: 'f.fee',
    nullable: true,
    example: -0.6,
  }),
  fee_currency: text('Currency of the balance that the fee was taken from, which may differ from `currency_code`.', {
    sql: 'f.fee_currency',
    nullable: true,
    example: 'USD',
  }),
  psp: text('Payment provider.', { example: 'simulator' }),
  psp_merchant_id: text('Merchant account at the provider.', { nullable: true }),
  psp_transaction_id: text('Identifier of the movement at the provider.', { nullable: true }),
  paid_at: instant('When the money moved: `psp_date` of the report, or `trx_created_at` where there is none.'),
})

const REPORT = `
  select r.*, ${moveOf('r')} as move, to_char(r.paid_at at time zone 'UTC', 'YYYY-MM') as month, c.project_id
  from (select r.*, ${paidAt('r')} as paid_at from report_transactions r where r.organization_id = $1) r
  join customers c on c.organization_id = r.organization_id and c.external_id = r.external_id
  where r.organization_id = $1`

// Several entries of a movement have one currency; if ever they have not, their sum is not known.
const FEE = `
  left join lateral (
    select case when min(p.currency_code) = max(p.currency_code) then -sum(p.fee) end as fee,
      case when min(p.currency_code) = max(p.currency_code) then min(p.currency_code) end as fee_currency
    from provider_fees p
    where p.organization_id = m.organization_id and p.psp = m.psp collate "C" and p.psp_merchant_id = m.psp_merchant_id
      and p.transaction_id = m.psp_transaction_id collate "C" and p.move = m.move) f on true`

/** What the caller calls the parts of a period, for sentences. */
type PeriodNames = Record<keyof PeriodGiven, string>
const PARAMETERS: PeriodNames = { month: 'month', from: 'from', to: 'to' }

/** Reads a month, or a first and a last day, or two instants. Throws a 400 whose sentence has these names. */
export function readPeriod({ month, from, to }: PeriodGiven, names = PARAMETERS): Period {
  if (month !== undefined && from === undefined && to === undefined) {
    const first = instantOf(readMonth(names.month, month))
    return { from: first, to: monthsAfter(first, 1) }
  }
  if (month !== undefined || from === undefined || to === undefined)
    throw new ApiError(400, 'invalid_parameter', `Give ${names.month}, or ${names.from} and ${names.to}.`)
  const period = {
    from: readBound(names.from, from, instantOf),
    to: readBound(names.to, to, (day) => instantOf(addDays(day, 1))),
  }
  if (Date.parse(period.from) >= Date.parse(period.to))
    throw new ApiError(
      400,
      'invalid_parameter',
      `${names.from} must be before the end of ${names.to}, got ${from} and ${to}.`,
    )
  if (Date.parse(period.to) > Date.parse(monthsAfter(period.from, MAX_MONTHS)))
    throw new ApiError(
      400,
      'invalid_parameter',
      `${names.from} and ${names.to} must be at most ${MAX_MONTHS} months apart.`,
    )
  return period
}

/** A full date-time is an instant; a day is what `ofDay` makes of it. */
function readBound(name: string, text: string, ofDay: (day: string) => string): string {
  if (!/^\d{4}-\d{2}-\d{2}[Tt]/.test(text)) return ofDay(readDay(name, text))
  try {
    const instant = readInstant(text)
    readDay(name, instant.slice(0, 10))
    return instant
  } catch (error) {
    if (!(error instanceof TimeError)) throw error
    throw new ApiError(400, 'invalid_parameter', `${name} ${error.message}, got "${shorten(text, 40)}".`)
  }
}

const instantOf = (day: string) => new Date(`${day}T00:00:00Z`).toISOString()

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
  with moved as materialized (
    select m.month, m.currency_code, m.psp, m.move, m.amount, f.fee, f.fee_currency
    from (${REPORT} and r.paid_at >= $2 and r.paid_at < $3) m ${FEE}),
  summed as (
    select month, currency_code, psp, fee_currency, sum(fee) as fee
    from moved where fee is not null group by month, currency_code, psp, fee_currency),
  fees as (
    select month, currency_code, psp,
      json_agg(json_build_object('fee', fee, 'fee_currency', fee_currency) order by fee_currency)::text as fees
    from summed group by month, currency_code, psp)
  select ${financeTotal.columns} from moved m left join fees f using (month, currency_code, psp)
  group by m.month, m.currency_code, m.psp, f.fees order by m.month, m.currency_code, m.psp`,
}

/** The place of a row in the list: of payments with the same time, in the order of their rows. */
export interface Place {
  paid_at: string
  trx_created_at: string
}

/** Rows of `financeRow` of a period, oldest first, after the place of the last row of the page before. */
export const financeRows = (
  db: Db,
  organizationId: string,
  { from, to }: Period,
  page: { after: Place | undefined; limit: number },
  row = financeRow,
): Promise<Row[]> =>
  db.read(ROWS.get(row)!, [
    ...[organizationId, from, to],
    ...[page.after?.paid_at ?? null, page.after?.trx_created_at ?? null, page.limit],
  ])

/** The place of a row of `financeRow`, or of this shape. */
export function placeOf(row: Row, { schema } = financeRow): Place {
  const texts = row.texts()
  const at = (name: string) => instantFromPg(texts[Object.keys(schema.properties as object).indexOf(name)]!)
  return { paid_at: at('paid_at'), trx_created_at: at('trx_created_at') }
}

const rowsAs = (row: Shape): Statement => ({
  name: row === financeRow ? 'list moved money' : 'list moved money without people',
  text: `
  select ${row.columns} from (
    select * from (${REPORT}
      and r.paid_at >= $2 and r.paid_at < $3
      and (r.paid_at, r.trx_created_at) > (coalesce($4::timestamptz, '-infinity'), coalesce($5::timestamptz, '-infinity'))) moved
    where move is not null order by paid_at, trx_created_at limit $6::int) m ${FEE}
  order by m.paid_at, m.trx_created_at`,
})
const ROWS = new Map([financeRow, financeRowWithoutPeople].map((row) => [row, rowsAs(row)]))
