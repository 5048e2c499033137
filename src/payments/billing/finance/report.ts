// What the finance report shows: totals by month, currency and merchant account, and the rows that add up to them.
import { MOVES } from '../../../core/records/payment-move.ts'
import { paidAt } from '../../../core/records/payment-time.ts'
import { withAndWithoutPeople } from '../../../core/records/without-people.ts'
import { addDays } from '../../../lib/days.ts'
import type { Db } from '../../../lib/pg/db.ts'
import type { Row } from '../../../lib/pg/row-bytes.ts'
import type { Statement } from '../../../lib/pg/types.ts'
import { Type } from '../../../lib/shape/schema.ts'
import { boolean, decimal, instant, integer, json, type Shape, shape, text } from '../../../lib/shape/shape.ts'
import { instantFromPg } from '../../../lib/time.ts'
import { booked, ORDER, WITH_CLOSED } from './booked.ts'
import type { Period } from './period.ts'
import { FINANCE_ZONE } from './zone.ts'

const OWN = 'not m.is_correction and m.kind'
const list = (names: readonly string[]) => names.map((name) => `'${name}'`).join(', ')
const sumOf = (column: string, condition: string) => `coalesce(sum(m.${column}) filter (where ${condition}), 0)`
const kindsSum = (column: string, kinds: readonly string[]) => sumOf(column, `${OWN} in (${list(kinds)})`)
const countOf = (kind: string) => `count(*) filter (where ${OWN} = '${kind}')`
const moved = (condition: string) => `count(*) filter (where m.kind is not null and ${condition})`

const feeSum = Type.Object(
  {
    fee: Type.Number({ description: 'Sum in major units, negative.', examples: [-42.3] }),
    fee_currency: Type.String({ description: 'ISO 4217 code.', examples: ['USD'] }),
  },
  { title: 'FeeSum', additionalProperties: false },
)

const inDollars = (what: string, sql: string) =>
  decimal(`\`${what}\` in US dollars, without the amounts that have no rate.`, { sql, example: 1240.5 })

export const financeTotal = shape('FinanceTotal', 'm', {
  month: text('Month, in the time zone of the report.', { example: '2026-10' }),
  currency_code: text('ISO 4217 code.', { example: 'USD' }),
  psp: text('Payment provider.', { example: 'stripe' }),
  psp_merchant_id: text('Merchant account; null for payments that name none.', { nullable: true, example: 'main' }),
  provider_account: text('The provider’s own id of that account, if it is known.', {
    sql: 'a.provider_account',
    nullable: true,
    example: 'acct_1NGk1a2eZvKYlo2C',
  }),
  payments: integer('How many payments succeeded.', { sql: countOf('sale'), example: 120 }),
  gross: decimal('Their sum, in major units.', { sql: kindsSum('amount', ['sale']), example: 1240.5 }),
  refunds: integer('How many refunds succeeded.', { sql: countOf('refund'), example: 3 }),
  refunded: decimal('Their sum, negative, without refunds that failed afterwards.', {
    sql: kindsSum('amount', ['refund', 'refund_failed']),
    example: -30,
  }),
  refunds_failed: integer('How many refunds failed after they had succeeded.', {
    sql: countOf('refund_failed'),
    example: 0,
  }),
  chargebacks: integer('How many chargebacks took money.', { sql: countOf('chargeback'), example: 1 }),
  charged_back: decimal('Their sum, negative, without what was returned after a dispute.', {
    sql: kindsSum('amount', ['chargeback', 'chargeback_reversal']),
    example: -10,
  }),
  chargeback_reversals: integer('How many chargebacks were returned.', {
    sql: countOf('chargeback_reversal'),
    example: 0,
  }),
  corrections: integer('How many rows correct a month that was closed.', { sql: moved('m.is_correction'), example: 0 }),
  corrected: decimal('Their sum, in major units.', { sql: sumOf('amount', 'm.is_correction'), example: 0 }),
  net: decimal('`gross` + `refunded` + `charged_back` + `corrected`.', {
    sql: sumOf('amount', 'true'),
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
    sql: moved('m.fee is null and not m.is_correction'),
    example: 0,
  }),
  net_after_fees: decimal('`net` + `fees`; null unless every fee is known and in `currency_code`.', {
    sql: `case when ${moved('(m.fee_currency = m.currency_code) is not true and not (m.is_correction and m.fee is null)')} = 0
      then coalesce(sum(m.amount + coalesce(m.fee, 0)) filter (where m.kind is not null), 0) end`,
    nullable: true,
    example: 1158.2,
  }),
  without_money: integer('Rows that moved no money: declined payments, failed refunds, unknown types.', {
    sql: 'count(*) filter (where m.kind is null)',
    example: 7,
  }),
  gross_usd: inDollars('gross', kindsSum('amount_usd', ['sale'])),
  refunded_usd: inDollars('refunded', kindsSum('amount_usd', ['refund', 'refund_failed'])),
  charged_back_usd: inDollars('charged_back', kindsSum('amount_usd', ['chargeback', 'chargeback_reversal'])),
  corrected_usd: inDollars('corrected', sumOf('amount_usd', 'm.is_correction')),
  net_usd: inDollars('net', sumOf('amount_usd', 'true')),
  without_usd: integer('How many movements have no value in US dollars.', {
    sql: moved('m.amount_usd is null and m.amount <> 0'),
    example: 0,
  }),
  net_without_usd: decimal('Their sum in `currency_code`.', {
    sql: sumOf('amount', 'm.amount_usd is null'),
    example: 0,
  }),
})

export const [financeRow, financeRowWithoutPeople] = withAndWithoutPeople('FinanceRow', 'm', ['external_id', 'email'], {
  paid_at: instant('When the money moved: `psp_date` of the report, or `trx_created_at` where there is none.'),
  booked_at: instant('The same, except of a correction: the beginning of the month that it is booked in.'),
  correction: boolean('Whether it is the change of a payment whose month was closed, and not the payment.', {
    sql: 'm.is_correction',
  }),
  kind: text('Kind of movement.', { enum: MOVES }),
  amount: decimal('In major units; negative when the merchant paid.', { example: -10.5 }),
  currency_code: text('ISO 4217 code.', { example: 'USD' }),
  amount_usd: decimal('The same in US dollars; null without a rate.', { nullable: true, example: -10.5 }),
  fee: decimal('What the provider kept, negative; positive if it returned a fee; null while it is not known.', {
    nullable: true,
    example: -0.6,
  }),
  fee_currency: text('Currency of the balance that the fee was taken from, which may differ from `currency_code`.', {
    nullable: true,
    example: 'USD',
  }),
  psp: text('Payment provider.', { example: 'stripe' }),
  psp_merchant_id: text('Merchant account at the provider.', { nullable: true }),
  psp_transaction_id: text('Identifier of the movement at the provider.', { nullable: true }),
  project_id: text('The project of the customer.', { example: 'shop' }),
  external_id: text('The caller’s id of the customer.', { sql: 'r.external_id', example: 'ada' }),
  email: text('Their e-mail address, if it is known.', { sql: 'coalesce(p.email, c.email)', nullable: true }),
  country: text('Their country, if it is known.', { sql: 'p.country', nullable: true, example: 'DE' }),
  product_id: text('What was paid for, if it is known.', { sql: 'u.product_id', nullable: true }),
  product: text('Its name.', { sql: 'd.name', nullable: true, example: 'Monthly plan' }),
  subscription_id: text('The subscription that was paid for, if it is known.', { sql: 'u.id', nullable: true }),
  service_from: instant('Beginning of the period that was paid for.', { sql: 'service.from_at', nullable: true }),
  service_to: instant('Its end.', { sql: 'service.to_at', nullable: true }),
  order_id: text('The order.', { example: '0199f0a6-5310-7d51-8f0f-6f3d1c1b6a56' }),
  trx_id: text('Identifier of the row in the transaction report.', { example: '0199f0a6-52f0-7d51-8f0f-6f3d1c1b6a55' }),
  trx_created_at: instant('When the row was added to the transaction report.'),
})

// A refund pays back what its order was for. A payment that does not name its subscription has the time of its transaction.
const DETAILS = `
  left join report_transactions r on r.organization_id = $1 and r.trx_id = m.trx_id
  left join customers c on c.organization_id = $1 and c.external_id = r.external_id
  left join profiles p on p.project_id = c.project_id and p.id = c.profile_id
  left join lateral (
    select s.meta_subs_id, ${paidAt('s')} as paid_at, s.currency_code from report_transactions s
    where s.organization_id = $1 and s.order_id = m.order_id and s.psp_transaction_type = 'sale'
    order by s.trx_created_at limit 1) sale on true
  left join lateral (
    select t.subscription_id from transactions t
    where t.project_id = c.project_id and t.profile_id = c.profile_id and t.subscription_id is not null
      and t.created_at = coalesce(sale.paid_at, m.paid_at) limit 1) t on true
  left join lateral (
    select u.* from subscriptions u
    where u.project_id = c.project_id and u.id in (r.meta_subs_id, sale.meta_subs_id, t.subscription_id)
    order by u.id = t.subscription_id limit 1) u on true
  left join products d on d.project_id = u.project_id and d.id = u.product_id
  left join lateral (
    select case when is_now then u.period_starts_at else sale.paid_at end as from_at,
      case when is_now then u.period_ends_at
        else sale.paid_at + u.billing_interval_count * ('1 ' || u.billing_interval)::interval end as to_at
    from (select coalesce(sale.paid_at >= u.period_starts_at and sale.paid_at < u.period_ends_at, false) as is_now) now
    where u.id is not null and sale.paid_at is not null) service on true`

/** Real money, or that of sandbox accounts; they are never added. */
type Which = Period & { test: boolean }

const paramsOf = (organizationId: string, { from, to, test }: Which) => [organizationId, from, addDays(to, 1), test]

/** Rows of `financeTotal` by month, currency and merchant account, in this order. */
export const financeTotals = (db: Db, organizationId: string, which: Which): Promise<Row[]> =>
  db.read(TOTALS, paramsOf(organizationId, which))

const GROUP = 'month, currency_code, psp, psp_merchant_id'
const TOTALS: Statement = {
  name: 'sum report rows',
  text: `
  with ${WITH_CLOSED},
  rows as materialized (select b.*, to_char(booked_at at time zone ${FINANCE_ZONE}, 'YYYY-MM') as month from (${booked()}) b),
  summed as (
    select ${GROUP}, fee_currency, sum(fee) as fee from rows where fee is not null and kind is not null
    group by ${GROUP}, fee_currency),
  fees as (
    select ${GROUP}, json_agg(json_build_object('fee', fee, 'fee_currency', fee_currency) order by fee_currency)::text as fees
    from summed group by ${GROUP})
  select ${financeTotal.columns} from rows m
  left join fees f on f.month = m.month and f.currency_code = m.currency_code and f.psp = m.psp
    and f.psp_merchant_id is not distinct from m.psp_merchant_id
  left join merchant_accounts a on a.organization_id = $1 and a.psp = m.psp collate "C" and a.psp_merchant_id = m.psp_merchant_id
  group by m.month, m.currency_code, m.psp, m.psp_merchant_id, a.provider_account, f.fees
  order by m.month, m.currency_code, m.psp, m.psp_merchant_id`,
}

/** The place of a row in the list. */
export interface Place {
  booked_at: string
  trx_created_at: string
  part: string
}

interface Page {
  after: Place | undefined
  limit: number
}

/** Rows of `row`, the oldest first, after the place of the last row of the page before; and each one's place. */
export async function financeRows(
  db: Db,
  organizationId: string,
  which: Which,
  { after, limit }: Page,
  row = financeRow,
): Promise<{ rows: Row[]; places: Place[] }> {
  const place = [after?.booked_at ?? '-infinity', after?.trx_created_at ?? '-infinity', after?.part ?? '0']
  const rows = await db.read(ROWS.get(row)!, [...paramsOf(organizationId, which), ...place, limit])
  const first = columnsOf(row)
  const places = rows.map((one) => {
    const [booked_at, trx_created_at, part] = one.texts().slice(first) as [string, string, string]
    return { booked_at: instantFromPg(booked_at), trx_created_at: instantFromPg(trx_created_at), part }
  })
  return { rows, places }
}

const columnsOf = ({ schema }: Shape) => Object.keys(schema.properties as object).length

const rowsAs = (row: Shape): Statement => ({
  name: row === financeRow ? 'list moved money' : 'list moved money without people',
  text: `
  with ${WITH_CLOSED}
  select ${row.columns}, m.booked_at, m.trx_created_at, m.part from (
    select * from (${booked({
      after: '(booked_at, trx_created_at, part) > ($5::timestamptz, $6::timestamptz, $7::int)',
      limit: '$8::int',
    })}) b where kind is not null order by ${ORDER} limit $8::int) m ${DETAILS}
  order by m.booked_at, m.trx_created_at, m.part`,
})
const ROWS = new Map([financeRow, financeRowWithoutPeople].map((row) => [row, rowsAs(row)]))

/** The months of the period that are closed, each with the time. */
export async function closedMonths({ query }: Pick<Db, 'query'>, organizationId: string, { from, to }: Period) {
  const rows = await query(
    `select to_char(month, 'YYYY-MM') as month, closed_at from finance_months
     where organization_id = $1 and month >= date_trunc('month', $2::date::timestamp) and month <= $3::date order by month`,
    [organizationId, from, to],
  )
  return rows.map(({ month, closed_at }) => ({ month: month!, closed_at: instantFromPg(closed_at!) }))
}
