// PaymentIntents: created unconfirmed, confirmed, cancelled, settled later where the card says so.
import type { Stripe } from 'stripe'
import { checkAmount } from './amounts.ts'
import {
  type Call,
  type Dialect,
  describing,
  existing,
  flag,
  inPath,
  integer,
  metadata,
  oneOf,
  required,
  route,
  text,
} from './call.ts'
import type { Decline } from './cards.ts'
import { makeCharge } from './charges.ts'
import { invalid, StripeError } from './errors.ts'
import { readRoutes } from './lists.ts'
import { newPaymentIntent } from './new-payment-intent.ts'
import { behaviourOf, save, usable } from './payment-methods.ts'

type PaymentIntent = Stripe.PaymentIntent

const CREATE_PARAMS = [
  'amount',
  'currency',
  'confirm',
  'customer',
  'description',
  'error_on_requires_action',
  'metadata',
  'off_session',
  'payment_method',
  'payment_method_types',
  'setup_future_usage',
]

export const paymentIntentRoutes = [
  route('POST', '/v1/payment_intents', CREATE_PARAMS, create),
  ...readRoutes('/v1/payment_intents', 'payment_intent', ['customer']),
  route('POST', '/v1/payment_intents/:id', ['metadata', 'description'], describing('payment_intent')),
  route(
    'POST',
    '/v1/payment_intents/:id/confirm',
    ['error_on_requires_action', 'off_session', 'payment_method'],
    (dialect, call) => confirm(dialect, call, inPath(dialect, call, 'payment_intent')),
  ),
  route('POST', '/v1/payment_intents/:id/cancel', ['cancellation_reason'], cancel),
]

function create(dialect: Dialect, call: Call): object {
  const amount = integer(call, 'amount')
  if (amount === undefined) required(call, 'amount')
  const currency = required(call, 'currency').toLowerCase()
  checkAmount(amount!, currency)
  const customer = text(call, 'customer')
  if (customer) existing(dialect, 'customer', customer, 'customer')
  const method = text(call, 'payment_method')
  const paymentMethod = method ? usable(dialect, method, customer) : undefined
  if (flag(call, 'off_session') && !flag(call, 'confirm')) {
    throw invalid('off_session can only be used with confirm=true.', { param: 'off_session' })
  }
  const made = dialect.state.put({
    ...newPaymentIntent(dialect, amount!, currency),
    customer: customer ?? null,
    description: text(call, 'description') ?? null,
    metadata: metadata(call),
    payment_method: paymentMethod?.id ?? null,
    setup_future_usage: oneOf(call, 'setup_future_usage', ['off_session', 'on_session']),
    status: paymentMethod ? 'requires_confirmation' : 'requires_payment_method',
  } satisfies PaymentIntent)
  dialect.emit('payment_intent.created', made)
  return flag(call, 'confirm') ? confirm(dialect, call, made) : made
}

/** Makes a payment with a saved card and confirms it at once. Throws the `StripeError` of a decline. */
export function pay(
  dialect: Dialect,
  { amount, ...fields }: { amount: number; currency: string; customer?: string; payment_method: string },
): PaymentIntent {
  const params = { ...fields, amount: String(amount), confirm: 'true', off_session: 'true' }
  return create(dialect, { method: 'POST', path: '/v1/payment_intents', id: '', params }) as PaymentIntent
}

function confirm(dialect: Dialect, call: Call, before: PaymentIntent): object {
  const given = text(call, 'payment_method')
  const method = given ? usable(dialect, given, idOf(before.customer)).id : idOf(before.payment_method)
  if (before.status !== 'requires_confirmation' && !(before.status === 'requires_payment_method' && given)) {
    throw unexpectedState(before, 'confirm')
  }
  const intent: PaymentIntent = { ...before, payment_method: method ?? null }
  const { decline, requiresAuthentication, processingMs } = behaviourOf(dialect, method!)
  // Without a customer a payment method serves once.
  if (intent.customer === null) dialect.state.retire(method!)
  if (requiresAuthentication) return requireAuthentication(dialect, call, intent)
  if (decline) throw declined(dialect, intent, decline)
  if (processingMs === undefined) return succeed(dialect, intent)
  dialect.state.schedule('settle_payment', intent.id, processingMs)
  const processing = dialect.state.put({ ...intent, status: 'processing', processing: { type: 'card' } })
  return dialect.emit('payment_intent.processing', processing)
}

/** A payment that was `processing` succeeds. */
export function settlePayment(dialect: Dialect, id: string): void {
  const intent = dialect.state.find('payment_intent', id)
  if (intent?.status === 'processing') succeed(dialect, intent)
}

function succeed(dialect: Dialect, intent: PaymentIntent): PaymentIntent {
  const { customer, payment_method, setup_future_usage } = intent
  if (setup_future_usage && customer) save(dialect, idOf(payment_method)!, idOf(customer)!)
  const charge = makeCharge(dialect, intent)
  const settled = dialect.state.put({
    ...intent,
    amount_received: intent.amount,
    latest_charge: charge.id,
    processing: null,
    status: 'succeeded',
  } satisfies PaymentIntent)
  dialect.emit('payment_intent.succeeded', settled)
  dialect.emit('charge.succeeded', charge)
  const { dispute } = behaviourOf(dialect, idOf(intent.payment_method)!)
  if (dispute) dialect.state.schedule('dispute', charge.id, 0)
  return settled
}

function declined(dialect: Dialect, intent: PaymentIntent, decline: Decline): StripeError {
  const charge = makeCharge(dialect, intent, decline)
  const paymentMethod = dialect.state.find('payment_method', idOf(intent.payment_method)!)!
  const error = { type: 'card_error' as const, ...decline, charge: charge.id, payment_method: paymentMethod }
  const failed = dialect.state.put({
    ...intent,
    last_payment_error: { ...error, code: decline.code as Stripe.PaymentIntent.LastPaymentError.Code },
    latest_charge: charge.id,
    payment_method: null,
    status: 'requires_payment_method',
  } satisfies PaymentIntent)
  dialect.emit('payment_intent.payment_failed', failed)
  dialect.emit('charge.failed', charge)
  return new StripeError(402, { ...error, payment_intent: failed }, { isOutcome: true })
}

/** On session the customer is asked; off session, or where the caller cannot ask, the attempt fails. */
function requireAuthentication(dialect: Dialect, call: Call, intent: PaymentIntent): PaymentIntent {
  if (flag(call, 'off_session') || flag(call, 'error_on_requires_action')) {
    const code = 'authentication_required'
    const message = 'Your card was declined. This transaction requires authentication.'
    throw declined(dialect, intent, { code, decline_code: code, message })
  }
  const asked = dialect.state.put({
    ...intent,
    next_action: { type: 'use_stripe_sdk', use_stripe_sdk: {} },
    status: 'requires_action',
  } satisfies PaymentIntent)
  return dialect.emit('payment_intent.requires_action', asked)
}

const CANCELLABLE = ['requires_payment_method', 'requires_capture', 'requires_confirmation', 'requires_action']
const REASONS = ['abandoned', 'duplicate', 'fraudulent', 'requested_by_customer'] as const

function cancel(dialect: Dialect, call: Call): object {
  const before = inPath(dialect, call, 'payment_intent')
  const cancellation_reason = oneOf(call, 'cancellation_reason', REASONS)
  if (!CANCELLABLE.includes(before.status)) throw unexpectedState(before, 'cancel')
  const canceled = dialect.state.put({
    ...before,
    canceled_at: dialect.state.now(),
    cancellation_reason,
    next_action: null,
    status: 'canceled',
  } satisfies PaymentIntent)
  return dialect.emit('payment_intent.canceled', canceled)
}

function unexpectedState(intent: PaymentIntent, verb: string): StripeError {
  const message = `You cannot ${verb} this PaymentIntent because it has a status of ${intent.status}.`
  return invalid(message, { code: 'payment_intent_unexpected_state', payment_intent: intent })
}

export function idOf(reference: string | { id: string } | null): string | undefined {
  return typeof reference === 'string' ? reference : reference?.id
}
