// Stripe's subscriptions as subscriptions of the data API.
import type { Stripe } from 'stripe'
import { Inconvertible, idOf, type Line, minorNumber, recordId, textOr, time } from './convert.ts'
import { costOf, productOf } from './products.ts'

export function subscriptionLine(subscription: Stripe.Subscription): Line {
  const { id, currency, items, cancellation_details, trial_start, trial_end } = subscription
  const first = items?.data?.[0]
  if (!first?.price?.recurring) throw new Inconvertible('has no item with a price of its own')
  const units = items.data.reduce((sum, item) => sum + costOf(item.price, item.quantity ?? 1), 0)
  const price = minorNumber(units, currency)
  const status = statusOf(subscription)
  return {
    record: 'subscription',
    data: {
      id: recordId(id),
      psp_id: id,
      status,
      renews: renews(subscription),
      sandbox: !subscription.livemode,
      created_at: time(subscription.created),
      billing_interval: first.price.recurring.interval,
      billing_interval_count: first.price.recurring.interval_count,
      price,
      currency,
      price_usd: currency === 'usd' ? price : null,
      payment_provider: 'stripe',
      period_starts_at: time(first.current_period_start),
      period_ends_at: time(first.current_period_end),
      profile_id: recordId(idOf(subscription.customer)!),
      product_id: recordId(productOf(first.price)),
      trial_offer: trial_end === null ? null : { starts_at: time(trial_start), ends_at: time(trial_end) },
      cancelled_at: time(subscription.canceled_at),
      cancellation_reason: textOr(cancellation_details?.feedback) ?? textOr(cancellation_details?.reason),
      renewed_at: first.current_period_start > subscription.start_date ? time(first.current_period_start) : null,
    },
  }
}

const STATUSES: Record<string, string> = {
  trialing: 'trialing',
  active: 'active',
  paused: 'paused',
  past_due: 'unpaid',
  unpaid: 'unpaid',
  incomplete: 'created',
  incomplete_expired: 'expired',
}

/**
 * A cancelled subscription is `expired` once its last period is over. One whose payments are paused at Stripe keeps the
 * status `active` there and is `paused` here, because nothing is collected for it.
 */
function statusOf({ status, pause_collection, ended_at, items }: Stripe.Subscription): string {
  if (status === 'canceled') {
    const end = Math.max(ended_at ?? 0, ...items.data.map(({ current_period_end }) => current_period_end ?? 0))
    return end * 1000 <= Date.now() ? 'expired' : 'cancelled'
  }
  if (status === 'active' && pause_collection) return 'paused'
  const known = STATUSES[status]
  if (known === undefined) throw new Inconvertible(`has the unknown status ${JSON.stringify(status)}`)
  return known
}

function renews({ status, cancel_at_period_end, cancel_at }: Stripe.Subscription): boolean {
  return ['trialing', 'active', 'past_due', 'paused'].includes(status) && !cancel_at_period_end && !cancel_at
}
