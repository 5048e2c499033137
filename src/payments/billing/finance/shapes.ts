// The fields of the finance report: a total by month, currency and merchant account, and a row.
import { MOVES } from '../../../core/records/payment-move.ts'
import { withAndWithoutPeople } from '../../../core/records/without-people.ts'
import { Type } from '../../../lib/shape/schema.ts'
import { boolean, decimal, instant, integer, json, shape, text } from '../../../lib/shape/shape.ts'
import { FINANCE_CURRENCY } from './currency.ts'

const OWN = 'not m.is_correction and m.kind'
const list = (names: readonly string[]) => names.map((name) => `'${name}'`).join(', ')
const sumOf = (column: string, condition: string) => `coalesce(sum(m.${column}) filter (where ${condition}), 0)`
const kindsSum = (column: string, kinds: readonly string[]) => sumOf(column, `${OWN} in (${list(kinds)})`)
/** SQL: the sums of a column of amounts. */
const sumsIn = (column: string) => ({
  gross: kindsSum(column, ['sale']),
  refunded: kindsSum(column, ['refund', 'refund_failed']),
  charged_back: kindsSum(column, ['chargeback', 'chargeback_reversal']),
  corrected: sumOf(column, 'm.is_correction'),
  net: sumOf(column, 'true'),
})
const [OWN_SUMS, DOLLARS, REPORTED] = [sumsIn('amount'), sumsIn('amount_usd'), sumsIn('amount_reported')]
const countOf = (kind: string) => `count(*) filter (where ${OWN} = '${kind}')`
const moved = (condition: string) => `count(*) filter (where m.kind is not null and ${condition})`
// The correction of a value in US dollars alone moves no money; a payment that came late has a fee, as any other.
const UNKNOWN_FEE = 'm.fee is null and not (m.is_correction and m.amount = 0)'

const feeSum = Type.Named('FeeSum', {
  fee: Type.Number({ description: 'Sum in major units, negative.', examples: [-42.3] }),
  fee_currency: Type.String({ description: 'ISO 4217 code.', examples: ['USD'] }),
})

const inDollars = (what: string, sql: string) =>
  decimal(`\`${what}\` in US dollars, without the amounts that have no rate.`, { sql, example: 1240.5 })
const reported = (what: string, sql: string) =>
  decimal(`\`${what}\` in \`reporting_currency\`, without the amounts that have no rate.`, { sql, example: 1240.5 })

const reportingCurrency = text('Reporting currency of the report.', { sql: FINANCE_CURRENCY, example: 'EUR' })

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
  gross: decimal('Their sum, in major units.', { sql: OWN_SUMS.gross, example: 1240.5 }),
  refunds: integer('How many refunds succeeded.', { sql: countOf('refund'), example: 3 }),
  refunded: decimal('Their sum, negative, without refunds that failed afterwards.', {
    sql: OWN_SUMS.refunded,
    example: -30,
  }),
  refunds_failed: integer('How many refunds failed after they had succeeded.', {
    sql: countOf('refund_failed'),
    example: 0,
  }),
  chargebacks: integer('How many chargebacks took money.', { sql: countOf('chargeback'), example: 1 }),
  charged_back: decimal('Their sum, negative, without what was returned after a dispute.', {
    sql: OWN_SUMS.charged_back,
    example: -10,
  }),
  chargeback_reversals: integer('How many chargebacks were returned.', {
    sql: countOf('chargeback_reversal'),
    example: 0,
  }),
  corrections: integer('How many rows correct a month that was closed.', { sql: moved('m.is_correction'), example: 0 }),
  corrected: decimal('Their sum, in major units.', { sql: OWN_SUMS.corrected, example: 0 }),
  net: decimal('`gross` + `refunded` + `charged_back` + `corrected`.', {
    sql: OWN_SUMS.net,
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
    sql: moved(UNKNOWN_FEE),
    example: 0,
  }),
  net_after_fees: decimal('`net` + `fees`; null unless every fee is known and in `currency_code`.', {
    sql: `case when ${moved(`${UNKNOWN_FEE} or m.fee_currency <> m.currency_code`)} = 0
      then coalesce(sum(m.amount + coalesce(m.fee, 0)) filter (where m.kind is not null), 0) end`,
    nullable: true,
    example: 1158.2,
  }),
  without_money: integer('Rows that moved no money: declined payments, failed refunds, unknown types.', {
    sql: 'count(*) filter (where m.kind is null)',
    example: 7,
  }),
  gross_usd: inDollars('gross', DOLLARS.gross),
  refunded_usd: inDollars('refunded', DOLLARS.refunded),
  charged_back_usd: inDollars('charged_back', DOLLARS.charged_back),
  corrected_usd: inDollars('corrected', DOLLARS.corrected),
  net_usd: inDollars('net', DOLLARS.net),
  without_usd: integer('How many movements have no value in US dollars.', {
    sql: moved('m.amount_usd is null and m.amount <> 0'),
    example: 0,
  }),
  net_without_usd: decimal('Their sum in `currency_code`.', {
    sql: sumOf('amount', 'm.amount_usd is null'),
    example: 0,
  }),
  reporting_currency: reportingCurrency,
  gross_reported: reported('gross', REPORTED.gross),
  refunded_reported: reported('refunded', REPORTED.refunded),
  charged_back_reported: reported('charged_back', REPORTED.charged_back),
  corrected_reported: reported('corrected', REPORTED.corrected),
  net_reported: reported('net', REPORTED.net),
  without_rate: integer('How many movements have no value in `reporting_currency`.', {
    sql: moved('m.amount_reported is null and m.amount <> 0'),
    example: 0,
  }),
  net_without_rate: decimal('Their sum in `currency_code`.', {
    sql: sumOf('amount', 'm.amount_reported is null'),
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
  reporting_currency: reportingCurrency,
  amount_reported: decimal('The same in `reporting_currency`; null without a rate.', { nullable: true, example: -9.7 }),
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
