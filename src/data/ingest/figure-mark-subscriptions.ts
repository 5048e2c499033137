// The rule of figure marks for subscriptions, and the days that several rules mark.
import { paidAt } from '../../core/records/payment-time.ts'
import type { Scope } from '../../core/records/record.ts'
import { dayIn, zoneOf } from '../../core/tenants/reporting.ts'
import { DUE } from '../figures/renewals.ts'
import { pays } from '../figures/sales.ts'
import { end, firstPayment, isPaidByStatus, isTrial } from '../figures/subscriptions.ts'
import { differ, exposures, type Rule, reportRows } from './figure-mark-rules.ts'

/** SQL: these ids as rows of `each`. A join with `in (a, b)` cannot be hashed, and reads a table anew for every row. */
export const eachOf = (...ids: string[]) =>
  `cross join lateral (values ${ids.map((id) => `(${id})`).join(', ')}) each (id)`

/** SQL: all days on which money of the profile moved, of which its first payment and its first session decide the dimensions. */
export const moneyOf = (from: string, profile: string, { project_id, organization_id }: Scope, where: string) => [
  `select 'sales', o.created_at from ${from}
   join transactions o on o.project_id = ${project_id} and o.profile_id = ${profile} where ${where}`,
  `select 'sales', r.paid_at from ${from}
   join customers c on c.project_id = ${project_id} and c.profile_id = ${profile}
   ${reportRows('c', organization_id)} where ${where}`,
]

/**
 * SQL: the days on which subscriptions of these profiles began to be paid for and ended, of people who have others: these decide whether
 * one is new, comes back or leaves.
 */
export const besideSubscription = (
  from: string,
  profile: string,
  own: string,
  project: string,
  where: string,
  since = `'-infinity'::timestamptz`,
) =>
  // Each person once: a tester has thousands of subscriptions, and all of them may change at once.
  `select 'subscriptions', d.at from (
     select ${profile} as id, min(${own}) as own, min(${since}) as since from ${from} where ${where} group by 1) who
   join subscriptions o on o.project_id = ${project} and o.profile_id = who.id
     and (o.id <> who.own or exists (
       select from subscriptions e where e.project_id = ${project} and e.profile_id = who.id and e.id <> o.id))
   cross join lateral (values (o.created_at), (${end('o')}), (${firstPayment('o', project)})) d (at) where d.at >= who.since`

/**
 * SQL: the days of the payments of the report that name the subscription, and of what went back of them: these have its product. The index
 * of these names has the default collation, and is not used for a comparison in that of ids.
 */
const namingPayments = (from: string, organization: string, where = 'true') =>
  `select 'sales', ${paidAt('r')} from ${from} join report_transactions named
   on named.organization_id = ${organization} and named.meta_subs_id = s.id collate "default"
   join report_transactions r on r.organization_id = ${organization} and r.order_id = named.order_id
   where ${where} and (r.psp_transaction_type <> 'sale' or r.status = 'succeeded')`

export const subscription: Rule = {
  changed: (from, scope) => {
    const { project_id } = scope
    const paid = 'price, currency, price_usd, billing_interval, billing_interval_count, created_at'.split(', ')
    const split = 'product_id, funnel_id, payment_provider, profile_id, sandbox, trial_transaction_id'.split(', ')
    const changed = `(${differ(...paid, ...split)} or (t.trial_offer is null) <> (s.trial_offer is null))`
    // The status decides whether it was a trial, and whether it was paid for if no payment of it is stored.
    const byStatus = `${isTrial('t')} <> ${isTrial('s')} or ${isPaidByStatus('t')} <> ${isPaidByStatus('s')} and not exists (
      select from transactions o where o.project_id = ${project_id} and o.subscription_id = t.id and ${pays('o', 's')})`
    const ended = `${end('t')} is distinct from ${end('s')} or (t.status = 'paused') <> (s.status = 'paused')
      or ${differ('cancellation_reason')}`
    const due = differ(
      ...'status, renews, period_ends_at, price, currency, price_usd, product_id, profile_id, sandbox'.split(', '),
    )
    return [
      ...['t', 's'].map(
        (row) =>
          `select 'renewals', ${row}.period_ends_at from ${from} where ${due} and ${row}.status in ${DUE} and ${row}.renews`,
      ),
      `select 'subscriptions', d.at from ${from}
       cross join lateral (values (t.created_at), (s.created_at), (${end('t')}), (${end('s')})) d (at)
       where ${changed} or (${byStatus})`,
      `select 'subscriptions', d.at from ${from} cross join lateral (values (${end('t')}), (${end('s')})) d (at) where ${ended}`,
      // One that is first paid for after its end ends with this payment.
      `select 'subscriptions', d.at from ${from}
       cross join lateral (values (s.created_at), (${firstPayment('s', project_id)})) d (at)
       where (${ended}) and d.at > least(${end('t')}, ${end('s')})`,
      besideSubscription(
        `${from} ${eachOf('t.profile_id', 's.profile_id')}`,
        'each.id',
        's.id',
        project_id,
        `(${changed} or (${byStatus}) or ${end('t')} is distinct from ${end('s')})`,
        // If only the end is another one, nothing before either of the two changes.
        `case when ${changed} or (${byStatus}) then '-infinity'
          else day_begins(${dayIn(`least(${end('t')}, ${end('s')})`, zoneOf(project_id))}, ${zoneOf(project_id)}) end`,
      ),
      `select family, o.created_at from ${from}
       join transactions o on o.project_id = ${project_id} and o.subscription_id = t.id
       cross join (values ('sales'), ('subscriptions')) families (family) where ${changed}`,
      `select 'visits', o.created_at from ${from} ${eachOf('t.session_id', 's.session_id')}
       join sessions o on o.project_id = ${project_id} and o.id = each.id
       where ${differ('session_id', 'profile_id')}`,
      ...['t.profile_id', 's.profile_id'].map((one) => exposures(from, one, project_id, `${changed} or ${byStatus}`)),
      // The product of the first payment of the person who paid for it.
      ...moneyOf(
        `${from} join transactions f on f.project_id = ${project_id} and f.subscription_id = t.id and f.price > 0`,
        'f.profile_id',
        scope,
        differ('product_id'),
      ),
      namingPayments(from, scope.organization_id, differ('product_id')),
    ]
  },
  added: (from, { project_id, organization_id }) => [
    namingPayments(from, organization_id),
    `select 'renewals', s.period_ends_at from ${from} where s.status in ${DUE} and s.renews`,
    `select 'subscriptions', d.at from ${from} cross join lateral (values (s.created_at), (${end('s')})) d (at)`,
    besideSubscription(from, 's.profile_id', 's.id', project_id, 'true'),
    exposures(from, 's.profile_id', project_id),
    `select 'visits', o.created_at from ${from} join sessions o on o.project_id = ${project_id} and o.id = s.session_id`,
  ],
}
