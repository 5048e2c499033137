// Payouts of merchant accounts, and what each consists of.
import { Type } from '../../lib/shape/schema.ts'
import { boolean, decimal, instant, integer, shape, text } from '../../lib/shape/shape.ts'
import { TAG } from './finance.ts'
import { equals, list, ofOrganization } from './list.ts'

export const PAYOUTS_PATH = '/organizations/:organization_id/finance/payouts'

const STATUSES = ['pending', 'in_transit', 'paid', 'failed', 'canceled']
// The entry of the payout itself is not one of its movements.
const IS_MOVEMENT = `not (e.type in ('payout', 'payout_cancel', 'payout_failure') and e.source = o.payout_id)`
const sum = (what: string, condition = 'true') => `
  (select coalesce(sum(${what}) filter (where ${condition}), 0) from balance_entries e
   where e.organization_id = o.organization_id and e.payout_id = o.payout_id and e.psp = o.psp
     and e.psp_merchant_id = o.psp_merchant_id and ${IS_MOVEMENT})`
const CHARGES = `e.type in ('charge', 'payment')`
// Some fees, and the failures of older refunds, are adjustments at Stripe, which only its category tells apart.
const ofType = (types: string, category: string) =>
  `(e.type in (${types}) or (e.type = 'adjustment' and e.category is not distinct from '${category}'))`
const REFUNDS = ofType(`'refund', 'payment_refund', 'refund_failure', 'payment_failure_refund'`, 'refund_failure')
const FEES = ofType(`'stripe_fee', 'stripe_fx_fee', 'tax_fee'`, 'fee')
const part = (description: string, sql: string) => decimal(description, { sql, example: 12.5 })

export const payout = shape('Payout', 'o', {
  psp: text('Payment provider.', { example: 'stripe' }),
  psp_merchant_id: text('Account at the provider.', { example: 'main' }),
  payout_id: text('The provider’s id.', { example: 'po_1NGk1a2eZvKYlo2C' }),
  test: boolean('Whether the account moves test money.', {
    sql: `coalesce((select a.is_sandbox from merchant_accounts a where a.organization_id = o.organization_id and a.psp = o.psp
      and a.psp_merchant_id = o.psp_merchant_id), false)`,
  }),
  amount: decimal('In major units; negative if money was taken from the bank account.', { example: 1158.2 }),
  currency_code: text('ISO 4217 code.', { example: 'USD' }),
  status: text('Its state at the provider; a failed one is in the balance again.', {
    enum: STATUSES,
  }),
  automatic: boolean('Whether it was made by a schedule. Of others, the provider does not tell what they consist of.', {
    sql: 'o.is_automatic',
  }),
  created_at: instant('When it was made.'),
  arrives_on: text('The day on which it arrives.', {
    sql: `to_char(o.arrives_on, 'YYYY-MM-DD')`,
    example: '2026-10-05',
  }),
  failure_code: text('Why it failed.', { nullable: true }),
  entries: integer('How many entries of the balance it consists of.', { sql: sum('1'), example: 120 }),
  charged: part('Payments in it.', sum('e.amount', CHARGES)),
  refunded: part('Refunds in it, negative.', sum('e.amount', REFUNDS)),
  fees: part('Fees of the payments and refunds in it, negative.', sum('-e.fee')),
  account_fees: part('Fees that were charged to the account, negative.', sum('e.amount', FEES)),
  adjusted: part(
    'Disputes, corrections by the provider, failed payouts that are paid again, application fees that were earned, and all else.',
    sum('e.amount', `not (${CHARGES} or ${REFUNDS} or ${FEES})`),
  ),
  difference: decimal('`amount` less all of these: 0, unless something is missing. Null unless `automatic`.', {
    sql: `case when o.is_automatic then o.amount - ${sum('e.net')} end`,
    nullable: true,
    example: 0,
  }),
  bank_day: text('The day of the bank’s line, if it was found.', {
    sql: `to_char(o.bank_day, 'YYYY-MM-DD')`,
    nullable: true,
  }),
  bank_amount: decimal('Its amount.', { nullable: true }),
  bank_reference: text('What identifies it at the bank.', { nullable: true }),
  matched_at: instant('When an operator noted it.', { nullable: true }),
})

export const payouts = [
  list({
    id: 'listPayouts',
    right: 'reports',
    command: 'finance payouts',
    columns: [
      'payout_id',
      'psp_merchant_id',
      'amount',
      'currency_code',
      'status',
      'charged',
      'refunded',
      'fees',
      'account_fees',
      'adjusted',
      'difference',
      'bank_day',
    ],
    path: PAYOUTS_PATH,
    tag: TAG,
    summary: 'List payouts',
    description: 'Each is the sum of its payments, refunds, fees and adjustments.',
    shape: payout,
    from: 'provider_payouts o',
    at: 'o.created_at',
    key: `md5(o.psp || ' ' || o.psp_merchant_id || ' ' || o.payout_id)`,
    filters: {
      psp_merchant_id: equals('o.psp_merchant_id', 'Only those of this account.', { maxLength: 256 }),
      status: equals('o.status', 'Only those in this state.', { enum: STATUSES }),
      matched: {
        schema: Type.Boolean({ description: 'Whether a line of the bank was found.' }),
        where: (value) => `(o.matched_at is not null) = ${value}`,
      },
    },
    ...ofOrganization('o'),
  }),
] as const
