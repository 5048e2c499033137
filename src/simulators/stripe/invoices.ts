// Invoices: one for each period of a subscription, paid with the customer's saved card.
import type { Stripe } from 'stripe'
import { type Call, type Dialect, existing, inPath, required, route, text } from './call.ts'
import { StripeError } from './errors.ts'
import { LIST_PARAMS, list, matching } from './lists.ts'
import { nulls } from './nulls.ts'
import { idOf, pay } from './payment-intents.ts'
import type { State } from './state.ts'

type Invoice = Stripe.Invoice

export const invoiceRoutes = [
  route('GET', '/v1/invoices', [...LIST_PARAMS, 'customer', 'status', 'subscription'], listAll),
  route('GET', '/v1/invoices/:id', [], (dialect, call) => inPath(dialect, call, 'invoice')),
  route('GET', '/v1/invoices/:id/lines', LIST_PARAMS, (dialect, call) =>
    list(call, inPath(dialect, call, 'invoice').lines.data.toReversed()),
  ),
  route('GET', '/v1/invoice_payments', [...LIST_PARAMS, 'invoice'], listPayments),
]

function listAll(dialect: Dialect, call: Call): object {
  const subscription = text(call, 'subscription')
  const found = matching(dialect, call, 'invoice', ['customer', 'status'])
  return list(
    call,
    found.filter(({ parent }) => !subscription || parent?.subscription_details?.subscription === subscription),
  )
}

function listPayments(dialect: Dialect, call: Call): object {
  const { payments } = existing(dialect, 'invoice', required(call, 'invoice'), 'invoice')
  return list(call, payments?.data.toReversed() ?? [])
}

/** Makes the invoice of a subscription's present period and pays it. Returns whether it was paid. */
export function collect(
  dialect: Dialect,
  subscription: Stripe.Subscription,
  reason: 'subscription_create' | 'subscription_cycle',
): boolean {
  const { state } = dialect
  const amount = subscription.items.data.reduce((sum, { price, quantity }) => {
    const { unit_amount } = price.currency_options?.[subscription.currency] ?? price
    return sum + (unit_amount ?? 0) * (quantity ?? 1)
  }, 0)
  const invoice = state.put(initialInvoice(dialect, subscription, amount, reason))
  state.put({ ...state.find('subscription', subscription.id)!, latest_invoice: invoice.id })
  dialect.emit('invoice.created', invoice)
  const intent = amount === 0 ? undefined : attempt(dialect, subscription, amount)
  const paid = amount === 0 || intent?.status === 'succeeded'
  const payments = intent ? [paymentOf(dialect, invoice, intent)] : []
  const settled = state.put({
    ...invoice,
    amount_paid: paid ? amount : 0,
    amount_remaining: paid ? 0 : amount,
    attempt_count: 1,
    attempted: true,
    payments: paymentList(payments),
    status: paid ? 'paid' : 'open',
    status_transitions: { ...invoice.status_transitions, paid_at: paid ? state.now() : null },
  } satisfies Invoice)
  dialect.emit(paid ? 'invoice.paid' : 'invoice.payment_failed', settled)
  return paid
}

/** The payment with the subscription's or the customer's card; undefined without one. */
function attempt(
  dialect: Dialect,
  subscription: Stripe.Subscription,
  amount: number,
): Stripe.PaymentIntent | undefined {
  const { state } = dialect
  const customer = state.find('customer', idOf(subscription.customer)!)
  const chosen = customer && !customer.deleted ? customer.invoice_settings.default_payment_method : null
  const method =
    idOf(subscription.default_payment_method) ??
    idOf(chosen) ??
    state.related('payment_method', 'customer', customer?.id ?? '').at(-1)?.id
  if (!method) return undefined
  try {
    return pay(dialect, { amount, currency: subscription.currency, customer: customer!.id, payment_method: method })
  } catch (error) {
    if (!(error instanceof StripeError)) throw error
    // A card that cannot be used is no attempt, a decline is one.
    return error.body.payment_intent as Stripe.PaymentIntent | undefined
  }
}

const paymentList = (data: Stripe.InvoicePayment[]) =>
  ({ object: 'list', data, has_more: false, url: '/v1/invoice_payments' }) as const

function paymentOf(
  { state, livemode }: Dialect,
  invoice: Invoice,
  intent: Stripe.PaymentIntent,
): Stripe.InvoicePayment {
  const paid = intent.status === 'succeeded'
  return {
    id: state.newId('inpay'),
    object: 'invoice_payment',
    amount_paid: paid ? intent.amount : null,
    amount_requested: intent.amount,
    created: state.now(),
    currency: intent.currency,
    invoice: invoice.id,
    is_default: true,
    livemode,
    payment: { type: 'payment_intent', payment_intent: intent.id },
    status: paid ? 'paid' : 'open',
    status_transitions: { canceled_at: null, paid_at: paid ? state.now() : null },
  }
}

// The fields that this simulator never sets, or only later.
const UNSET = {
  ...nulls('account_tax_ids application automatically_finalizes_at custom_fields customer_account'),
  ...nulls('customer_address customer_email customer_name customer_phone customer_shipping'),
  ...nulls('default_payment_method default_source description due_date footer from_invoice'),
  ...nulls('last_finalization_error latest_revision next_payment_attempt number on_behalf_of receipt_number'),
  ...nulls('rendering shipping_cost shipping_details statement_descriptor test_clock webhooks_delivered_at'),
  amount_overpaid: 0,
  amount_shipping: 0,
  ending_balance: 0,
  post_payment_credit_notes_amount: 0,
  pre_payment_credit_notes_amount: 0,
  starting_balance: 0,
} as const

function initialInvoice(
  { state, livemode }: Dialect,
  subscription: Stripe.Subscription,
  amount: number,
  billing_reason: Invoice['billing_reason'],
): Invoice {
  const id = state.newId('in')
  const now = state.now()
  return {
    id,
    object: 'invoice',
    ...UNSET,
    account_country: 'US',
    account_name: 'Tundish',
    amount_due: amount,
    amount_paid: 0,
    amount_remaining: amount,
    attempt_count: 0,
    attempted: false,
    auto_advance: true,
    automatic_tax: { disabled_reason: null, enabled: false, liability: null, provider: null, status: null },
    billing_reason,
    collection_method: 'charge_automatically',
    created: now,
    currency: subscription.currency,
    customer: subscription.customer,
    customer_tax_exempt: 'none',
    customer_tax_ids: [],
    default_tax_rates: [],
    discounts: [],
    effective_at: now,
    issuer: { type: 'self' },
    lines: { object: 'list', data: linesOf(state, id, subscription), has_more: false, url: `/v1/invoices/${id}/lines` },
    livemode,
    metadata: {},
    parent: {
      quote_details: null,
      subscription_details: { metadata: {}, subscription: subscription.id },
      type: 'subscription_details',
    },
    payments: paymentList([]),
    payment_settings: { default_mandate: null, payment_method_options: null, payment_method_types: null },
    period_end: now,
    period_start: now,
    status: 'open',
    status_transitions: { finalized_at: now, marked_uncollectible_at: null, paid_at: null, voided_at: null },
    subtotal: amount,
    subtotal_excluding_tax: amount,
    total: amount,
    total_discount_amounts: [],
    total_excluding_tax: amount,
    total_pretax_credit_amounts: [],
    total_taxes: [],
  }
}

/** A line for each item with its present period. */
function linesOf(state: State, invoice: string, { id, currency, items, livemode }: Stripe.Subscription) {
  return items.data.map(({ id: subscription_item, price, quantity = 0, ...item }): Stripe.InvoiceLineItem => {
    const amount = (price.unit_amount ?? 0) * quantity
    return {
      id: state.newId('il'),
      object: 'line_item',
      amount,
      currency,
      description: null,
      discount_amounts: [],
      discountable: true,
      discounts: [],
      invoice,
      livemode,
      metadata: {},
      parent: {
        invoice_item_details: null,
        subscription_item_details: {
          invoice_item: null,
          proration: false,
          proration_details: null,
          subscription: id,
          subscription_item,
        },
        type: 'subscription_item_details',
      },
      period: { start: item.current_period_start, end: item.current_period_end },
      pretax_credit_amounts: [],
      pricing: null,
      quantity,
      quantity_decimal: null,
      subscription: id,
      subtotal: amount,
      taxes: [],
    }
  })
}
