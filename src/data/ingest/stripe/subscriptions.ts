// Stripe's subscriptions as subscriptions of the data API.
import type { Stripe } from 'stripe'
import type { Completed } from './complete.ts'
import { Inconvertible, idOf, type Line, recordId, type Target, textOr, time } from './convert.ts'
import { type Names, namesIn, nearest } from './names.ts'
import type { Period } from './paid-period.ts'
import { periodPrice } from './period-price.ts'
import { productOf } from './products.ts'

/** Throws `Inconvertible`. */
export function subscriptionLine(completed: Completed, target: Target, ofCheckout: Names | undefined): Line {
  const { subscription, paid } = completed
  const { id, currency, items, cancellation_details, trial_start, trial_end, created, start_date } = subscription
  const { price, note, item } = periodPrice(completed)
  const status = statusOf(subscription)
  const period = periodOf(completed, status, item)
  return {
    record: 'subscription',
    names: nearest(namesIn(target.metadata, subscription), ofCheckout, namesIn(target.metadata, subscription.customer)),
    data: {
      id: recordId(id),
      psp_id: id,
      status,
      renews: renews(subscription, item),
      sandbox: !subscription.livemode,
      created_at: time(created),
      billing_interval: item.price.recurring.interval,
      billing_interval_count: item.price.recurring.interval_count,
      price,
      price_note: note,
      currency,
      price_usd: currency === 'usd' ? price : null,
      payment_provider: 'stripe',
      period_starts_at: time(period?.start),
      period_ends_at: time(period?.end),
      profile_id: recordId(idOf(subscription.customer)!),
      product_id: recordId(productOf(items.data[0]!.price)),
      trial_offer: trial_end === null ? null : { starts_at: time(trial_start), ends_at: time(trial_end) },
      // Stripe does not tell when the collection was paused; what is paid counts until its end.
      paused_at: status === 'paused' ? time(paid?.end ?? start_date) : null,
      cancelled_at: isNeverPaid(subscription) ? null : time(subscription.canceled_at),
      cancellation_reason: textOr(cancellation_details?.feedback) ?? textOr(cancellation_details?.reason),
      // One that is backdated begins its first period when it is created.
      renewed_at: period && period.start > Math.max(start_date, created) ? time(period.start) : null,
    },
  }
}

/** The present period, which may end early; of an unpaid subscription the last paid one, and of one that is over the one that it ended in. */
function periodOf(
  { subscription, paid }: Completed,
  status: string,
  { current_period_start: start, current_period_end: end }: Stripe.SubscriptionItem,
): Period | null {
  if (isNeverPaid(subscription)) return null
  if (status === 'unpaid') return paid ?? null
  const { ended_at, canceled_at, cancel_at } = subscription
  if (subscription.status === 'canceled') return { start, end: ended_at ?? canceled_at ?? end }
  return { start, end: cancel_at !== null && cancel_at < end ? cancel_at : end }
}

/** Stripe ends a subscription whose first payment was not made within a day. */
const isNeverPaid = ({ status }: Stripe.Subscription) => status === 'incomplete_expired'

const STATUSES: Record<string, string> = {
  trialing: 'trialing',
  active: 'active',
  paused: 'paused',
  past_due: 'unpaid',
  unpaid: 'unpaid',
  canceled: 'expired',
  incomplete: 'created',
  incomplete_expired: 'expired',
}

/**
 * A subscription whose payments are paused at Stripe keeps the status `active` there and is `paused` here, because nothing is
 * collected for it.
 */
function statusOf({ status, pause_collection }: Stripe.Subscription): string {
  if (status === 'active' && pause_collection) return 'paused'
  const known = Object.hasOwn(STATUSES, status) ? STATUSES[status] : undefined
  if (known === undefined) throw new Inconvertible(`has the unknown status ${JSON.stringify(status)}`)
  return known
}

function renews(
  { status, cancel_at_period_end, cancel_at }: Stripe.Subscription,
  { current_period_end }: Stripe.SubscriptionItem,
): boolean {
  const ends = cancel_at_period_end || (cancel_at !== null && cancel_at <= current_period_end)
  return ['trialing', 'active', 'past_due', 'paused'].includes(status) && !ends
}
