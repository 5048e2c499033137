// The metrics: what each is called, how it is computed from the families, and its definition in a sentence.
import type { Family } from './family.ts'
import { payments } from './payments.ts'
import { sales } from './sales.ts'
import { subscriptions } from './subscriptions.ts'
import { screens, visits } from './visits.ts'

/** Sums of measures: `['gross', '-refunded']` is gross less refunds. */
type Terms = readonly string[]

interface Base {
  family: Family
  unit: 'count' | 'money' | 'ratio'
  definition: string
  /** Whether a value is the sum of all days so far, and not of those of the period. */
  standing?: boolean
}

export interface Sum extends Base {
  unit: 'count' | 'money'
  terms: Terms
}

/** One metric divided by another; `unit` says what of. */
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
const ratio = (family: Family, part: string, whole: string, definition: string): Quotient => ({
  family,
  unit: 'ratio',
  of: [part, whole],
  definition,
})

const SUMS = {
  revenue: money(sales, ['gross'], 'What was sold: successful payments, before refunds and chargebacks.'),
  refunds: money(sales, ['refunded'], 'What was paid back, on the day it was paid back.'),
  chargebacks: money(sales, ['charged_back'], 'What disputes took, less what won disputes brought back.'),
  net_revenue: money(
    sales,
    ['gross', '-refunded', '-charged_back'],
    'Revenue less refunds and chargebacks of the same days.',
  ),
  sales: count(sales, 'sales', 'Successful payments.'),
  refund_count: count(sales, 'refunds', 'Refunds that were paid out.'),
  chargeback_count: count(sales, 'chargebacks', 'Disputes that took money.'),
  payers: count(sales, 'payers', 'People who paid, each counted once in a calendar month.'),
  without_usd: count(sales, 'without_usd', 'Movements of money whose value in US dollars is not known.'),

  sessions: count(visits, 'sessions', 'Sessions that began.'),
  people: count(visits, 'people', 'People whose first session began.'),
  replied: count(visits, 'replied', 'Sessions with at least one reply to a question.'),
  emails: count(visits, 'emailed', 'Sessions of people who have given an e-mail address, also if it was erased since.'),
  subscribed: count(visits, 'subscribed', 'Sessions that a subscription came out of.'),
  paid: count(visits, 'paid', 'Sessions that led to a payment of more than nothing.'),

  answered: count(screens, 'answered', 'Sessions with a reply on this screen.'),
  stopped: count(screens, 'stopped', 'Sessions whose last reply is on this screen.'),

  attempts: count(payments, 'attempts', 'Attempts to take a payment whose outcome is known.'),
  accepted: count(payments, 'accepted', 'Attempts that succeeded.'),
  declined: count(payments, 'declined', 'Attempts that failed.'),

  new_subscriptions: count(subscriptions, 'started', 'Subscriptions that were made.'),
  trials: count(subscriptions, 'trials', 'Subscriptions made with a trial.'),
  converted: count(subscriptions, 'converted', 'Of the trials made on these days, those that were paid for since.'),
  began_paying: count(subscriptions, 'began_paying', 'Subscriptions whose first payment after any trial was made.'),
  ended: count(subscriptions, 'ended', 'Paying subscriptions that were paused, or whose paid period ran out.'),
  mrr_change: money(subscriptions, ['mrr'], 'What the monthly recurring revenue gained or lost.'),
  paying: {
    ...count(subscriptions, 'began_paying', 'Subscriptions that are being paid for at the end of the day.'),
    terms: ['began_paying', '-ended'],
    standing: true,
  },
  without_payment: {
    ...count(
      subscriptions,
      'started',
      'Subscriptions that nothing was paid for until the end of the day, such as trials.',
    ),
    terms: ['started', '-began_paying'],
    standing: true,
  },
  over: {
    ...count(
      subscriptions,
      'ended',
      'Subscriptions that were paid for once, and are not any more at the end of the day.',
    ),
    standing: true,
  },
  mrr: {
    ...money(subscriptions, ['mrr'], 'Monthly recurring revenue: what a month of all paying subscriptions is worth.'),
    standing: true,
  },
} satisfies Record<string, Sum>

const QUOTIENTS = {
  arpu: { ...ratio(sales, 'revenue', 'people', 'Revenue for each person who came.'), unit: 'money' },
  arppu: { ...ratio(sales, 'revenue', 'payers', 'Revenue for each payer of a month.'), unit: 'money' },
  revenue_per_session: { ...ratio(sales, 'revenue', 'sessions', 'Revenue for each session.'), unit: 'money' },
  refund_rate: ratio(sales, 'refunds', 'revenue', 'Refunds as a share of the revenue of the same days.'),
  chargeback_rate: ratio(sales, 'chargebacks', 'revenue', 'Chargebacks as a share of the revenue of the same days.'),
  reply_rate: ratio(visits, 'replied', 'sessions', 'Sessions that replied as a share of all.'),
  email_rate: ratio(visits, 'emails', 'sessions', 'Sessions of people with an e-mail address as a share of all.'),
  subscription_rate: ratio(visits, 'subscribed', 'sessions', 'Sessions that subscribed as a share of all.'),
  conversion_rate: ratio(visits, 'paid', 'sessions', 'Sessions that paid as a share of all.'),
  acceptance_rate: ratio(payments, 'accepted', 'attempts', 'Attempts that succeeded as a share of all.'),
  trial_conversion: ratio(subscriptions, 'converted', 'trials', 'Trials that were paid for since as a share of all.'),
} satisfies Record<string, Quotient>

export type SumName = keyof typeof SUMS
export type MetricName = SumName | keyof typeof QUOTIENTS

export const sums: Readonly<Record<SumName, Sum>> = SUMS
export const metrics: Readonly<Record<MetricName, Metric>> = { ...SUMS, ...QUOTIENTS } as Record<MetricName, Metric>
export const metricNames = Object.keys(metrics) as MetricName[]

/** The sums that a metric is made of, itself if it is one. */
export function sumsOf(name: MetricName): SumName[] {
  const metric = metrics[name]
  return 'of' in metric ? [...(metric.of as readonly SumName[])] : [name as SumName]
}
