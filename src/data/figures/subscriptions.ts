// Figures of subscriptions: by the day of creation, the day of the first payment, and the day on which they end.
import { dayOf, type Family, inDollars, monthOf, orNone, within } from './family.ts'
import { pays } from './sales.ts'

/** SQL: whether the subscription began with a trial. */
export const isTrial = (row: string) =>
  `(${row}.trial_offer is not null or ${row}.trial_transaction_id is not null or ${row}.status = 'trialing')`

/** SQL: whether the status says that the subscription was paid for. Used if no payment of it is stored. */
export const isPaidByStatus = (row: string) =>
  `(${row}.status = 'active' or (${row}.status not in ('created', 'trialing') and not ${isTrial(row)}))`

// `paid_from`: the instant of the first payment; null: never paid for.
const FIRST_PAYMENT = `left join lateral (
    select t.created_at as at from transactions t
    where t.project_id = u.project_id and t.subscription_id = u.id and ${pays('t', 'u')}
    order by t.created_at, t.id limit 1) first on true
  cross join lateral (
    select coalesce(first.at, case when ${isPaidByStatus('u')} then u.created_at end) as paid_from) paying`

const END = 'subscription_end(u.status, u.period_ends_at, u.cancelled_at, u.paused_at, u.created_at)'

const facts = (day: string, measures: string, where: string, from = `subscriptions u ${FIRST_PAYMENT}`) => `
  select ${dayOf(day)} as day, u.sandbox or p.preview as test, ${orNone('u.funnel_id')} as funnel,
    u.product_id as product, ${orNone('p.country')} as country, ${orNone('u.payment_provider')} as provider,
    ${orNone(monthOf('paid_from'))} as cohort, u.currency, ${measures}
  from ${from} join profiles p on p.project_id = u.project_id and p.id = u.profile_id
  where u.project_id = $1 and ${where}`

const worth = (price: string) => `monthly_worth(${price}, u.billing_interval, u.billing_interval_count)`
const WORTH = worth('u.price')
const WORTH_USD = `coalesce(${worth(inDollars('u.price_usd', 'u.price', 'u.currency'))}, 0)`

// Subscriptions whose first payment is on these days, found by the payments of these days.
const FIRST_PAID = `transactions f
  join subscriptions u on u.project_id = f.project_id and u.id = f.subscription_id ${FIRST_PAYMENT}`

const STARTED = `1 as started, ${isTrial('u')}::int as trials, (${isTrial('u')} and paid_from is not null)::int as converted,
  0 as began_paying, 0 as ended, 0::numeric as mrr, 0::numeric as mrr_usd`
const BEGAN = `0, 0, 0, 1, 0, ${WORTH}, ${WORTH_USD}`
const ENDED = `0, 0, 0, 0, 1, -${WORTH}, -${WORTH_USD}`

export const subscriptions: Family = {
  name: 'subscriptions',
  table: 'figures_subscriptions',
  dimensions: ['funnel', 'product', 'country', 'provider', 'cohort'],
  splits: [['funnel'], ['product'], ['country'], ['provider'], ['cohort']],
  money: true,
  measures: ['started', 'trials', 'converted', 'began_paying', 'ended', 'mrr', 'mrr_usd'],
  facts: [
    facts('u.created_at', STARTED, within('u.created_at')),
    facts(
      'f.created_at',
      BEGAN,
      `f.project_id = $1 and ${within('f.created_at')} and f.price > 0 and f.id is distinct from u.trial_transaction_id
        and not exists (select from transactions t where t.project_id = $1 and t.subscription_id = u.id and ${pays('t', 'u')}
          and (t.created_at, t.id) < (f.created_at, f.id))`,
      FIRST_PAID,
    ),
    facts('u.created_at', BEGAN, `${within('u.created_at')} and first.at is null and paid_from is not null`),
    facts(
      END,
      ENDED,
      `u.status in ('paused', 'cancelled', 'expired', 'unpaid') and ${within(END)} and paid_from is not null`,
    ),
  ].join(' union all '),
}
