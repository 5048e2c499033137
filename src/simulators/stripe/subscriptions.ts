// Subscriptions: created with their first payment, renewed by time, changed and cancelled.
import type { Stripe } from 'stripe'
import { DAY_S, monthsAfter } from '../../lib/days.ts'
import type { Form } from '../../lib/http/form.ts'
import { type Call, type Dialect, existing, flag, inPath, integer, metadata, required, route, text } from './call.ts'
import { addDiscounts } from './coupons.ts'
import { invalid } from './errors.ts'
import { collect } from './invoices.ts'
import { LIST_PARAMS, list, matching } from './lists.ts'
import { nulls } from './nulls.ts'

type Subscription = Stripe.Subscription

const CREATE_FIELDS = [
  'currency',
  'customer',
  'default_payment_method',
  'discounts',
  'items',
  'metadata',
  'off_session',
  'trial_period_days',
]
const UPDATE_FIELDS = ['cancel_at_period_end', 'default_payment_method', 'metadata', 'pause_collection']

export const subscriptionRoutes = [
  route('POST', '/v1/subscriptions', CREATE_FIELDS, create),
  route('GET', '/v1/subscriptions', [...LIST_PARAMS, 'customer', 'status'], listAll),
  route('GET', '/v1/subscriptions/:id', [], (dialect, call) => inPath(dialect, call, 'subscription')),
  route('POST', '/v1/subscriptions/:id', UPDATE_FIELDS, update),
  route('DELETE', '/v1/subscriptions/:id', [], (dialect, call) =>
    cancel(dialect, inPath(dialect, call, 'subscription')),
  ),
]

/** Without `status` cancelled ones are left out; `all` shows every one. */
function listAll(dialect: Dialect, call: Call): object {
  const status = text(call, 'status')
  const found = matching(dialect, call, 'subscription', ['customer'])
  return list(
    call,
    found.filter((one) => status === 'all' || (status ? one.status === status : one.status !== 'canceled')),
  )
}

function create(dialect: Dialect, call: Call): object {
  const customer = existing(dialect, 'customer', required(call, 'customer'), 'customer')
  if (customer.deleted)
    throw invalid(`No such customer: '${customer.id}'`, { code: 'resource_missing', param: 'customer' })
  const trialDays = integer(call, 'trial_period_days') ?? 0
  const made = initialSubscription(dialect, call, customer, trialDays)
  dialect.emit('customer.subscription.created', dialect.state.put(made))
  if (trialDays > 0) return made
  const paid = collect(dialect, made, 'subscription_create')
  return settle(dialect, made.id, paid ? 'active' : 'incomplete')
}

// The fields that this simulator never sets, or only later.
const UNSET = {
  ...nulls('application application_fee_percent billing_cycle_anchor_config billing_thresholds cancel_at'),
  ...nulls('canceled_at customer_account days_until_due default_source description ended_at latest_invoice'),
  ...nulls('managed_payments next_pending_invoice_item_invoice on_behalf_of pause_collection payment_settings'),
  ...nulls('pending_invoice_item_interval pending_setup_intent pending_update schedule test_clock'),
  ...nulls('transfer_data'),
} as const

function initialSubscription(dialect: Dialect, call: Call, customer: Stripe.Customer, trialDays: number): Subscription {
  const { state, livemode } = dialect
  const now = state.now()
  const id = state.newId('sub')
  const items = readItems(dialect, call, id, trialDays)
  const trial_end = trialDays > 0 ? now + trialDays * DAY_S : null
  return {
    id,
    object: 'subscription',
    ...UNSET,
    automatic_tax: { disabled_reason: null, enabled: false, liability: null },
    billing_cycle_anchor: trial_end ?? now,
    billing_mode: { flexible: null, type: 'classic' },
    billing_schedules: [],
    cancel_at_period_end: false,
    cancellation_details: { comment: null, feedback: null, feedback_option: null, reason: null },
    collection_method: 'charge_automatically',
    created: now,
    currency: text(call, 'currency') ?? items[0]!.price.currency,
    customer: customer.id,
    default_payment_method: text(call, 'default_payment_method') ?? null,
    default_tax_rates: [],
    discounts: addDiscounts(dialect, call, { subscription: id, customer: customer.id }),
    invoice_settings: {
      ...nulls('account_tax_ids custom_fields description footer'),
      issuer: { type: 'self' },
    },
    items: { object: 'list', data: items, has_more: false, url: `/v1/subscription_items?subscription=${id}` },
    livemode,
    metadata: metadata(call),
    start_date: now,
    status: trialDays > 0 ? 'trialing' : 'incomplete',
    trial_end,
    trial_settings: { end_behavior: { billing_cycle_anchor: null, missing_payment_method: 'create_invoice' } },
    trial_start: trial_end === null ? null : now,
  }
}

function readItems(dialect: Dialect, call: Call, subscription: string, trialDays: number): Stripe.SubscriptionItem[] {
  const given = call.params['items']
  if (!Array.isArray(given) || given.length === 0) throw invalid('Missing required param: items.', { param: 'items' })
  const now = dialect.state.now()
  return given.map((item) => {
    const inner: Call = { ...call, params: item as Form }
    const price = existing(dialect, 'price', required(inner, 'price'), 'items[0][price]')
    if (!price.recurring) throw invalid('The price specified is set to `type=one_time`.', { param: 'items[0][price]' })
    const itemId = dialect.state.newId('si')
    return {
      id: itemId,
      object: 'subscription_item',
      billing_thresholds: null,
      created: now,
      current_period_end: trialDays > 0 ? now + trialDays * DAY_S : periodEnd(now, price.recurring),
      current_period_start: now,
      current_trial: null,
      discounts: addDiscounts(dialect, inner, { subscription, subscription_item: itemId }),
      metadata: {},
      plan: planOf(price, price.recurring),
      price,
      ...(price.recurring.usage_type === 'licensed' && { quantity: integer(inner, 'quantity') ?? 1 }),
      subscription,
      tax_rates: [],
    }
  })
}

/** The same as the price, in the form that Stripe had before prices. */
function planOf(price: Stripe.Price, recurring: Stripe.Price.Recurring): Stripe.Plan {
  const { id, active, billing_scheme, created, currency, livemode, metadata, nickname, product, tiers_mode } = price
  const same = { id, active, billing_scheme, created, currency, livemode, metadata, nickname, product, tiers_mode }
  return {
    ...same,
    object: 'plan',
    amount: price.unit_amount,
    amount_decimal: price.unit_amount_decimal,
    interval: recurring.interval,
    interval_count: recurring.interval_count,
    meter: recurring.meter,
    transform_usage: price.transform_quantity,
    trial_period_days: recurring.trial_period_days,
    usage_type: recurring.usage_type,
  }
}

function periodEnd(start: number, { interval, interval_count }: Stripe.Price.Recurring): number {
  if (interval === 'day' || interval === 'week')
    return start + interval_count * (interval === 'day' ? DAY_S : 7 * DAY_S)
  return monthsAfter(start * 1000, interval_count * (interval === 'year' ? 12 : 1)) / 1000
}

/** Begins a new period with its payment, as happens at Stripe when the old one ends. A payment that fails makes the subscription `past_due`. */
export function renew(dialect: Dialect, id: string): Subscription {
  const before = existing(dialect, 'subscription', id, 'id', 404)
  if (before.cancel_at_period_end) return cancel(dialect, before)
  const data = before.items.data.map((item) => ({
    ...item,
    current_period_start: item.current_period_end,
    current_period_end: periodEnd(item.current_period_end, item.price.recurring!),
  }))
  const moved = dialect.state.put({ ...before, items: { ...before.items, data } })
  if (before.pause_collection) return settle(dialect, id, before.status)
  return settle(dialect, id, collect(dialect, moved, 'subscription_cycle') ? 'active' : 'past_due')
}

function settle(dialect: Dialect, id: string, status: Subscription['status']): Subscription {
  const before = dialect.state.find('subscription', id)!
  return dialect.emit('customer.subscription.updated', dialect.state.put({ ...before, status }))
}

function update(dialect: Dialect, call: Call): object {
  const before = inPath(dialect, call, 'subscription')
  if (before.status === 'canceled')
    throw invalid('A canceled subscription can only update its cancellation_details and metadata.')
  const changed: Subscription = { ...before, metadata: metadata(call, before.metadata) }
  if (call.params['cancel_at_period_end'] !== undefined) {
    const ends = flag(call, 'cancel_at_period_end')
    changed.cancel_at_period_end = ends
    changed.canceled_at = ends ? dialect.state.now() : null
    changed.cancel_at = ends ? before.items.data[0]!.current_period_end : null
    changed.cancellation_details = { ...before.cancellation_details!, reason: ends ? 'cancellation_requested' : null }
  }
  const pause = call.params['pause_collection']
  if (pause === '') changed.pause_collection = null
  else if (pause !== undefined) changed.pause_collection = { behavior: 'void', resumes_at: null }
  if (call.params['default_payment_method'] !== undefined)
    changed.default_payment_method = text(call, 'default_payment_method') || null
  return dialect.emit('customer.subscription.updated', dialect.state.put(changed))
}

function cancel(dialect: Dialect, before: Subscription): Subscription {
  const now = dialect.state.now()
  const canceled = dialect.state.put({
    ...before,
    canceled_at: before.canceled_at ?? now,
    cancellation_details: { ...before.cancellation_details!, reason: 'cancellation_requested' },
    ended_at: now,
    status: 'canceled',
  } satisfies Subscription)
  return dialect.emit('customer.subscription.deleted', canceled)
}
