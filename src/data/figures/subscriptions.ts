// Figures of subscriptions: by the day of creation, the day of the first payment, and the day on which they end.
import { dayOf, type Family, monthOf, orNone, reportedPrice, within } from './family.ts'
import { pays } from './sales.ts'
import { alone, byPerson, with_ } from './splits.ts'

/** SQL: whether the subscription began with a trial. */
export const isTrial = (row: string) =>
  `(${row}.trial_offer is not null or ${row}.trial_transaction_id is not null or ${row}.status = 'trialing')`

/**
 * SQL: whether the status says that the subscription was paid for. Used if no payment of it is stored. One that is over or unpaid without
 * the end of a period was not, such as one whose first payment failed.
 */
export const isPaidByStatus = (row: string) =>
  `(${row}.status = 'active' or (${row}.status not in ('created', 'trialing') and not ${isTrial(row)}
    and not (${row}.status in ('expired', 'unpaid') and coalesce(${row}.period_ends_at, ${row}.cancelled_at) is null)))`

/** SQL: the instant of the first payment for the subscription. */
export const firstPayment = (subscription: string, project: string) => `(
  select f.created_at from transactions f
  where f.project_id = ${project} and f.subscription_id = ${subscription}.id and ${pays('f', subscription)}
  order by f.created_at, f.id limit 1)`

/** SQL: adds `paying.paid_from` to the subscription `u`: the instant of the first payment, or null if it was never paid for. */
export const FIRST_PAYMENT = `left join lateral (
    select t.created_at as at from transactions t
    where t.project_id = u.project_id and t.subscription_id = u.id and ${pays('t', 'u')}
    order by t.created_at, t.id limit 1) first on true
  cross join lateral (
    select coalesce(first.at, case when ${isPaidByStatus('u')} then u.created_at end) as paid_from) paying`

/** SQL: whether the subscription is in a state in which it ends at `end`. */
export const hasEnd = (row: string) => `${row}.status in ('paused', 'cancelled', 'expired', 'unpaid')`
/** SQL: when the subscription ends. */
export const end = (row: string) =>
  `subscription_end(${row}.status, ${row}.period_ends_at, ${row}.cancelled_at, ${row}.paused_at, ${row}.created_at)`

/** SQL: the fields of a fact about the subscription `u` of the profile `p`. */
const facts = (day: string, measures: string, where: string, from = `subscriptions u ${FIRST_PAYMENT}`) => `
  select ${dayOf(day)} as day, u.sandbox or p.preview as test, ${orNone('u.funnel_id')} as funnel,
    u.product_id as product, ${orNone('p.country')} as country, ${orNone('u.payment_provider')} as provider,
    ${orNone(monthOf('paid_from'))} as cohort, u.currency, u.profile_id, u.sandbox,
    u.id as subscription_id, ${measures}
  from ${from} join profiles p on p.project_id = u.project_id and p.id = u.profile_id
  where u.project_id = $1 and ${where}`

const worth = (price: string) => `monthly_worth(${price}, u.billing_interval, u.billing_interval_count)`
const WORTH = worth('u.price')
const WORTH_USD = `coalesce(${worth(`(${reportedPrice('u')})::bigint`)}, 0)`
const UNVALUED = `case when (${reportedPrice('u')}) is null then ${WORTH} else 0 end`

// Subscriptions whose first payment is on these days, found by the payments of these days.
const FIRST_PAID = `transactions f
  join subscriptions u on u.project_id = f.project_id and u.id = f.subscription_id
  cross join lateral (select f.created_at as paid_from) paying`

// Subscriptions that only their status says were paid for, from their creation on.
const WITHOUT_PAYMENT = 'subscriptions u cross join lateral (select u.created_at as paid_from) paying'

const STARTED = `false as is_paused, '' as reason, 1 as started, ${isTrial('u')}::int as trials,
  (${isTrial('u')} and paid_from is not null)::int as converted,
  0 as began_paying, 0 as ended, 0::numeric as mrr, 0::numeric as mrr_usd,
  0::numeric as mrr_unvalued`
const BEGAN = `false as is_paused, '' as reason, 0 as started, 0 as trials, 0 as converted, 1 as began_paying, 0 as ended,
  ${WORTH} as mrr, ${WORTH_USD} as mrr_usd, ${UNVALUED} as mrr_unvalued`
const ENDED = `u.status = 'paused', ${orNone('u.cancellation_reason')}, 0, 0, 0, 0, 1, -${WORTH}, -${WORTH_USD},
  -(${UNVALUED})`

/** SQL: what the first payment is a fact of. */
const atFirstPayment = (measures: string, where = 'true') => [
  facts(
    'f.created_at',
    measures,
    `f.project_id = $1 and ${within('f.created_at')} and f.price > 0 and f.id is distinct from u.trial_transaction_id
      and not exists (select from transactions t where t.project_id = $1 and t.subscription_id = u.id and ${pays('t', 'u')}
        and (t.created_at, t.id) < (f.created_at, f.id)) and ${where}`,
    FIRST_PAID,
  ),
  facts(
    'u.created_at',
    measures,
    `${within('u.created_at')} and ${isPaidByStatus('u')} and not exists (
      select from transactions t where t.project_id = $1 and t.subscription_id = u.id and ${pays('t', 'u')}) and ${where}`,
    WITHOUT_PAYMENT,
  ),
]

// One whose first payment is after its end, such as a debt that was paid late, ends with this payment: it never ends before it begins.
const MOVED = [
  ...atFirstPayment(BEGAN),
  ...atFirstPayment(ENDED, `paid_from > ${end('u')}`),
  facts(end('u'), ENDED, `${hasEnd('u')} and ${within(end('u'))} and paid_from <= ${end('u')}`),
].join(' union all ')

// What a person pays for before and after the day, read once for each person: read for each subscription, it takes hours for a person
// with thousands of them, such as a tester.
const AROUND = `
  select who.*, o.before, o.after, o.ever
  from (select distinct profile_id, sandbox, day from moved) who
  cross join lateral (
    select coalesce(bool_or(began < who.day and (ended is null or ended >= who.day)), false) as before,
      coalesce(bool_or(began <= who.day and (ended is null or ended > who.day)), false) as after,
      coalesce(bool_or(began < who.day), false) as ever
    from (
      select ${dayOf('paid_from')} as began, ${dayOf(end('u'))} as ended from subscriptions u ${FIRST_PAYMENT}
      where u.project_id = $1 and u.profile_id = who.profile_id and u.sandbox = who.sandbox and ${WORTH} > 0 offset 0) own) o`

// Each change of the MRR has one of these, so that they add up to all of it.
const MOVEMENT = `case when moved.is_paused then 'paused'
  when around.before and around.after then case when sum(moved.mrr) filter (where not moved.is_paused) over (
    partition by moved.profile_id, moved.sandbox, moved.day, moved.currency) < 0 then 'contraction' else 'expansion' end
  when around.before or not around.after and moved.ended = 1 then 'churn'
  when around.ever then 'reactivation' else 'new' end`

const FACTS = `
    with moved as materialized (${MOVED}), around as materialized (${AROUND})
    select moved.*, ${MOVEMENT} as movement from moved join around using (profile_id, sandbox, day)
    union all
    select own.*, '' from (${facts('u.created_at', STARTED, within('u.created_at'))}) own`

export const subscriptions: Family = {
  name: 'subscriptions',
  table: 'figures_subscriptions',
  dimensions: ['movement', 'funnel', 'product', 'country', 'provider', 'cohort', 'reason'],
  splits: [
    ...alone(['movement', 'funnel', 'product', 'country', 'provider', 'cohort', 'reason']),
    ...with_('movement', ['funnel', 'product', 'country', 'provider', 'cohort', 'reason']),
  ],
  // A reason may be what a customer wrote.
  limited: ['reason'],
  money: true,
  measures: ['ended', 'started', 'trials', 'converted', 'began_paying', 'mrr', 'mrr_usd', 'mrr_unvalued'],
  facts: FACTS,
  ofPeople: true,
  more: byPerson(FACTS),
}
