// The metrics: the name of each, how it is computed from the families, and its definition in a sentence.
import { declines } from './declines.ts'
import type { Family } from './family.ts'
import { payments } from './payments.ts'
import { returned } from './returned.ts'
import { sales } from './sales.ts'
import { spend } from './spend.ts'
import { subscriptions } from './subscriptions.ts'
import { screens, visits } from './visits.ts'

/** Sums of measures: `['gross', '-refunded']` is gross less refunds. */
type Terms = readonly string[]

interface Base {
  family: Family
  unit: 'count' | 'money' | 'ratio'
  definition: string
  /** Whether the metric is a value at the end of the period, computed as the sum of all days up to it. */
  atEnd?: boolean
}

export interface Sum extends Base {
  unit: 'count' | 'money'
  terms: Terms
  /** Whether it has no value in the reporting currency, and is only read with each currency separately. */
  ownOnly?: boolean
}

/** One metric divided by another: `of` are the dividend and the divisor. */
export interface Quotient extends Base {
  unit: 'ratio' | 'money'
  of: readonly [string, string]
}

export type Metric = Sum | Quotient

const count = (family: Family, measure: string, definition: string): Sum => ({
  family,
  unit: 'count',
  terms: [measure],
  definition,
})
const money = (family: Family, terms: Terms, definition: string): Sum => ({ family, unit: 'money', terms, definition })
/** What a sum of money leaves out; only in each currency. */
const unvalued = (family: Family, terms: Terms, of: string): Sum => ({
  ...money(
    family,
    terms,
    `What \`${of}\` leaves out, because it has no value in the reporting currency; only with \`money=own\`.`,
  ),
  ownOnly: true,
})
const ratio = (family: Family, part: string, whole: string, definition: string): Quotient => ({
  family,
  unit: 'ratio',
  of: [part, whole],
  definition,
})

const SUMS = {
  revenue: money(sales, ['gross'], 'Gross revenue: successful payments, before refunds and chargebacks.'),
  refunds: money(sales, ['refunded'], 'The amount of refunds, on the day of the refund.'),
  chargebacks: money(sales, ['charged_back'], 'The amount that disputes withdrew, less what won disputes returned.'),
  net_revenue: money(
    sales,
    ['gross', '-refunded', '-charged_back'],
    'Revenue less refunds and chargebacks of the same days.',
  ),
  sales: count(sales, 'sales', 'The number of successful payments.'),
  refund_count: count(sales, 'refunds', 'The number of refunds that were paid out.'),
  chargeback_count: count(sales, 'chargebacks', 'The number of disputes that withdrew money.'),
  payers: count(sales, 'payers', 'People who paid, each counted once in a calendar month.'),
  customers: count(sales, 'customers', 'People whose first payment it was.'),
  without_usd: count(
    sales,
    'without_usd',
    'Payments, refunds and chargebacks without a value in the reporting currency.',
  ),
  revenue_unvalued: unvalued(sales, ['gross_unvalued'], 'revenue'),
  refunds_unvalued: unvalued(sales, ['refunded_unvalued'], 'refunds'),
  chargebacks_unvalued: unvalued(sales, ['charged_back_unvalued'], 'chargebacks'),
  net_revenue_unvalued: unvalued(
    sales,
    ['gross_unvalued', '-refunded_unvalued', '-charged_back_unvalued'],
    'net_revenue',
  ),

  sessions: count(visits, 'sessions', 'Sessions that began.'),
  people: count(visits, 'people', 'People whose first session began.'),
  visitors: count(visits, 'visitors', 'People who had a session, each counted once in a calendar month.'),
  replied: count(visits, 'replied', 'Sessions with at least one reply to a question.'),
  emails: count(visits, 'emailed', 'Sessions of people who gave an e-mail address, even if it was erased later.'),
  subscribed: count(visits, 'subscribed', 'Sessions that led to a subscription.'),
  paid: count(visits, 'paid', 'Sessions that led to a payment of more than 0.'),

  spend: money(spend, ['spent'], 'What was spent on advertising.'),
  spend_without_usd: count(
    spend,
    'without_usd',
    'Amounts spent on advertising without a value in the reporting currency.',
  ),
  spend_unvalued: unvalued(spend, ['spent_unvalued'], 'spend'),

  answered: count(screens, 'answered', 'Sessions with a reply on this screen.'),
  stopped: count(screens, 'stopped', 'Sessions whose last reply is on this screen.'),

  attempts: count(payments, 'attempts', 'Payment attempts whose outcome is known.'),
  accepted: count(payments, 'accepted', 'Payment attempts that succeeded.'),
  declined: count(payments, 'declined', 'Payment attempts that failed.'),

  first_declines: count(declines, 'declines', 'Payments whose first attempt was declined.'),
  declined_amount: money(declines, ['amount'], 'The amount of payments whose first attempt was declined.'),
  recovered: count(declines, 'recovered', 'Those of them that were paid within 30 days.'),
  recovered_amount: money(declines, ['recovered_amount'], 'The amount of those that were paid within 30 days.'),
  declines_without_usd: count(declines, 'without_usd', 'First declines without a value in the reporting currency.'),
  declined_amount_unvalued: unvalued(declines, ['amount_unvalued'], 'declined_amount'),
  recovered_amount_unvalued: unvalued(declines, ['recovered_amount_unvalued'], 'recovered_amount'),

  payments: count(returned, 'payments', 'Successful payments of the payment report.'),
  paid_amount: money(returned, ['amount'], 'The amount of these payments.'),
  refunded_payments: count(returned, 'refunded_payments', 'Those of them of which something was refunded, whenever.'),
  refunded_amount: money(returned, ['refunded'], 'The amount that was refunded of these payments.'),
  disputed_payments: count(
    returned,
    'disputed_payments',
    'Those of them that were disputed, also if the dispute was won.',
  ),
  disputed_amount: money(
    returned,
    ['charged_back'],
    'The amount that disputes withdrew of these payments, less what won disputes returned.',
  ),
  payments_without_usd: count(
    returned,
    'without_usd',
    'These payments, refunds and disputes without a value in the reporting currency.',
  ),

  new_subscriptions: count(subscriptions, 'started', 'Subscriptions that were created.'),
  trials: count(subscriptions, 'trials', 'Subscriptions that were created with a trial.'),
  converted: count(subscriptions, 'converted', 'Trials of these days whose subscription was paid for later.'),
  began_paying: count(
    subscriptions,
    'began_paying',
    'Subscriptions with their first payment, not counting that of a trial.',
  ),
  ended: count(subscriptions, 'ended', 'Paying subscriptions that were paused, or whose paid period ended.'),
  mrr_change: money(subscriptions, ['mrr'], 'The change of the monthly recurring revenue.'),
  paying: {
    ...count(subscriptions, 'began_paying', 'Paying subscriptions at the end of the day.'),
    terms: ['began_paying', '-ended'],
    atEnd: true,
  },
  without_payment: {
    ...count(subscriptions, 'started', 'Subscriptions not paid for by the end of the day, such as trials.'),
    terms: ['started', '-began_paying'],
    atEnd: true,
  },
  over: {
    ...count(subscriptions, 'ended', 'Subscriptions that were paid for and have ended by the end of the day.'),
    atEnd: true,
  },
  mrr: {
    ...money(subscriptions, ['mrr'], 'Monthly recurring revenue: the value of all paying subscriptions for a month.'),
    atEnd: true,
  },
  mrr_unvalued: { ...unvalued(subscriptions, ['mrr_unvalued'], 'mrr'), atEnd: true },
} satisfies Record<string, Sum>

const QUOTIENTS = {
  arpu: {
    ...ratio(
      sales,
      'revenue',
      'visitors',
      'Average revenue per user: revenue divided by the people who were there, each counted once in a calendar month.',
    ),
    unit: 'money',
  },
  arppu: {
    ...ratio(
      sales,
      'revenue',
      'payers',
      'Average revenue per paying user: revenue divided by payers, who are counted once in each month.',
    ),
    unit: 'money',
  },
  revenue_per_session: { ...ratio(sales, 'revenue', 'sessions', 'Revenue divided by sessions.'), unit: 'money' },
  cac: {
    ...ratio(
      spend,
      'spend',
      'customers',
      'Cost of a customer: what was spent, divided by the people whose first payment it was.',
    ),
    unit: 'money',
  },
  refund_rate: ratio(sales, 'refunds', 'revenue', 'Refunds divided by the revenue of the same days.'),
  chargeback_rate: ratio(sales, 'chargebacks', 'revenue', 'Chargebacks divided by the revenue of the same days.'),
  reply_rate: ratio(visits, 'replied', 'sessions', 'The share of sessions with a reply.'),
  email_rate: ratio(visits, 'emails', 'sessions', 'The share of sessions of people who gave an e-mail address.'),
  subscription_rate: ratio(visits, 'subscribed', 'sessions', 'The share of sessions that led to a subscription.'),
  conversion_rate: ratio(visits, 'paid', 'sessions', 'The share of sessions that led to a payment.'),
  acceptance_rate: ratio(payments, 'accepted', 'attempts', 'The share of payment attempts that succeeded.'),
  recovery_rate: ratio(
    declines,
    'recovered',
    'first_declines',
    'The share of payments with a declined first attempt that were paid within 30 days.',
  ),
  refund_rate_by_count: ratio(
    returned,
    'refunded_payments',
    'payments',
    'The share of payments of which something was refunded, whenever.',
  ),
  refund_rate_by_money: ratio(
    returned,
    'refunded_amount',
    'paid_amount',
    'The share of the money of payments that was refunded.',
  ),
  dispute_rate_by_count: ratio(returned, 'disputed_payments', 'payments', 'The share of payments that were disputed.'),
  dispute_rate_by_money: ratio(
    returned,
    'disputed_amount',
    'paid_amount',
    'The share of the money of payments that disputes withdrew.',
  ),
  trial_conversion: ratio(
    subscriptions,
    'converted',
    'trials',
    'The share of trials whose subscription was paid for later.',
  ),
} satisfies Record<string, Quotient>

export type SumName = keyof typeof SUMS
export type MetricName = SumName | keyof typeof QUOTIENTS

export const sums: Readonly<Record<SumName, Sum>> = SUMS
export const metrics: Readonly<Record<MetricName, Metric>> = { ...SUMS, ...QUOTIENTS } as Record<MetricName, Metric>
export const metricNames = Object.keys(metrics) as MetricName[]

/** The sums that a metric is computed from; a sum is its own. */
export function sumsOf(name: MetricName): SumName[] {
  const metric = metrics[name]
  return 'of' in metric ? [...(metric.of as readonly SumName[])] : [name as SumName]
}
