// Checkout sessions: made by a shop's server, paid on a page of the simulator, with the metadata that the shop gave.
import type { Stripe } from 'stripe'
import { DAY_S } from '../../lib/days.ts'
import type { Form } from '../../lib/http/form.ts'
import {
  type Call,
  type Dialect,
  existing,
  integer,
  metadata,
  oneOf,
  perform,
  type Route,
  required,
  route,
  text,
  within,
} from './call.ts'
import { customerRoutes } from './customers.ts'
import { invalid } from './errors.ts'
import { readRoutes } from './lists.ts'
import { nulls } from './nulls.ts'
import { paymentIntentRoutes } from './payment-intents.ts'
import { paymentMethodRoutes } from './payment-methods.ts'
import { subscriptionRoutes } from './subscriptions.ts'

export type CheckoutSession = Stripe.Checkout.Session

const CREATE_PARAMS = [
  'cancel_url',
  'client_reference_id',
  'customer',
  'customer_email',
  'line_items',
  'metadata',
  'mode',
  'payment_intent_data',
  'subscription_data',
  'success_url',
]
const FILTERS = ['customer', 'payment_intent', 'status', 'subscription'] as const

export const checkoutRoutes: readonly Route[] = [
  route('POST', '/v1/checkout/sessions', CREATE_PARAMS, create),
  ...readRoutes('/v1/checkout/sessions', 'checkout.session', FILTERS, shown),
]

/** What is bought, which Stripe shows of a session only by a separate call. */
export interface Bought {
  currency: string
  prices: { price: string; quantity: string }[]
  data: Form
}

function create(dialect: Dialect, call: Call): object {
  const { state, livemode } = dialect
  const mode = oneOf(call, 'mode', ['payment', 'subscription'])
  if (mode === null) throw invalid('Missing required param: mode.', { code: 'parameter_missing', param: 'mode' })
  const customer = text(call, 'customer')
  if (customer) existing(dialect, 'customer', customer, 'customer')
  const { bought, total } = readItems(dialect, call, mode)
  const id = state.newId(livemode ? 'cs_live' : 'cs_test')
  const now = state.now()
  const made: CheckoutSession & { bought: Bought } = {
    ...UNSET,
    id,
    object: 'checkout.session',
    amount_subtotal: total,
    amount_total: total,
    automatic_tax: { enabled: false, liability: null, provider: null, status: null },
    cancel_url: text(call, 'cancel_url') ?? null,
    client_reference_id: text(call, 'client_reference_id') ?? null,
    created: now,
    currency: bought.currency,
    custom_fields: [],
    custom_text: { after_submit: null, shipping_address: null, submit: null, terms_of_service_acceptance: null },
    discounts: [],
    customer: customer ?? null,
    customer_creation: mode === 'payment' ? 'if_required' : null,
    customer_email: text(call, 'customer_email') ?? null,
    expires_at: now + DAY_S,
    livemode,
    metadata: metadata(call),
    mode,
    payment_method_options: {},
    payment_method_types: ['card'],
    payment_status: 'unpaid',
    shipping_options: [],
    status: 'open',
    success_url: required(call, 'success_url'),
    total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: 0 },
    ui_mode: 'hosted_page',
    url: `/c/pay/${id}`,
    bought,
  }
  return shown(state.put(made))
}

// The fields that this simulator never sets, or only when the session is paid.
const UNSET = {
  ...nulls('adaptive_pricing after_expiration allow_promotion_codes allowed_payment_method_types'),
  ...nulls('billing_address_collection client_secret collected_information consent consent_collection'),
  ...nulls('currency_conversion customer_account customer_details integration_identifier invoice'),
  ...nulls('invoice_creation locale managed_payments origin_context payment_intent payment_link'),
  ...nulls('payment_method_collection payment_method_configuration_details permissions recovered_from'),
  ...nulls('saved_payment_method_options setup_intent shipping_address_collection shipping_cost submit_type'),
  ...nulls('subscription wallet_options'),
} as const

function readItems(dialect: Dialect, call: Call, mode: 'payment' | 'subscription'): { bought: Bought; total: number } {
  const given = call.params['line_items']
  if (!Array.isArray(given) || given.length === 0)
    throw invalid('Missing required param: line_items.', { code: 'parameter_missing', param: 'line_items' })
  const items = given.map((item) => {
    const inner: Call = { ...call, params: item as Form }
    const price = existing(dialect, 'price', required(inner, 'price'), 'line_items[0][price]')
    if ((price.recurring === null) !== (mode === 'payment'))
      throw invalid(`The price ${price.id} does not fit the mode ${mode}.`, { param: 'line_items[0][price]' })
    return { price, quantity: integer(inner, 'quantity') ?? 1 }
  })
  return {
    bought: {
      currency: items[0]!.price.currency,
      prices: items.map(({ price, quantity }) => ({ price: price.id, quantity: String(quantity) })),
      data: within(call, mode === 'payment' ? 'payment_intent_data' : 'subscription_data')?.params ?? {},
    },
    total: items.reduce((sum, { price, quantity }) => sum + (price.unit_amount ?? 0) * quantity, 0),
  }
}

/** Without what only the simulator needs. */
function shown(session: CheckoutSession): CheckoutSession {
  const { bought: _bought, ...rest } = session as CheckoutSession & { bought?: Bought }
  return rest
}

/**
 * Pays an open session with a new card, as the customer does on Stripe's page: makes the customer if there is none, and saves the
 * card. Throws the `StripeError` of a decline; the session stays open then.
 */
export function payCheckout(dialect: Dialect, id: string, email: string | undefined, card: string): CheckoutSession {
  const { state } = dialect
  const session = existing(dialect, 'checkout.session', id, 'id', 404) as CheckoutSession & { bought: Bought }
  if (session.status !== 'open') throw invalid(`The checkout session ${id} is ${session.status}.`)
  const address = session.customer_email ?? email
  const customer =
    (session.customer as string | null) ??
    perform(dialect, customerRoutes, 'POST', '/v1/customers', { ...(address && { email: address }) }).id
  const method = perform(dialect, paymentMethodRoutes, 'POST', `/v1/payment_methods/${card}/attach`, { customer }).id
  const paid =
    session.mode === 'subscription'
      ? subscribe(dialect, session, customer, method)
      : charge(dialect, session, customer, method)
  const complete = state.put({
    ...session,
    ...paid,
    customer,
    customer_details: { ...NO_DETAILS, tax_ids: [], email: address ?? null },
    payment_status: 'paid',
    status: 'complete',
    url: null,
  } as CheckoutSession)
  return dialect.emit('checkout.session.completed', shown(complete))
}

const NO_DETAILS = {
  ...nulls('address business_name individual_name name phone'),
  tax_exempt: 'none',
} as const

type Paying = CheckoutSession & { bought: Bought }

function subscribe(dialect: Dialect, { bought }: Paying, customer: string, default_payment_method: string): object {
  const params = { ...bought.data, customer, default_payment_method, items: bought.prices }
  const made = perform<Stripe.Subscription>(dialect, subscriptionRoutes, 'POST', '/v1/subscriptions', params)
  if (made.status !== 'active') throw invalid('Your card was declined.', { code: 'card_declined' })
  return { subscription: made.id, invoice: made.latest_invoice }
}

function charge(dialect: Dialect, { bought, amount_total }: Paying, customer: string, payment_method: string): object {
  const params = {
    ...bought.data,
    amount: String(amount_total),
    currency: bought.currency,
    customer,
    payment_method,
    confirm: 'true',
  }
  return { payment_intent: perform(dialect, paymentIntentRoutes, 'POST', '/v1/payment_intents', params).id }
}
