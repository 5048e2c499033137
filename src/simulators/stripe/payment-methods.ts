// Payment methods: saved cards, made from test tokens.
import type { Stripe } from 'stripe'
import { type Call, type Dialect, existing, inPath, metadata, oneOf, required, route, within } from './call.ts'
import { type Behaviour, readToken } from './cards.ts'
import { invalid, missing, StripeError } from './errors.ts'
import { LIST_PARAMS, list } from './lists.ts'

export const paymentMethodRoutes = [
  route('POST', '/v1/payment_methods', ['type', 'card', 'metadata', 'sepa_debit'], create),
  route('GET', '/v1/payment_methods', [...LIST_PARAMS, 'customer', 'type'], (dialect, call) =>
    list(call, attached(dialect, required(call, 'customer'))),
  ),
  route('GET', '/v1/payment_methods/:id', [], (dialect, call) => find(dialect, call.id, 'payment_method', 404)),
  route('POST', '/v1/payment_methods/:id', ['metadata', 'card', 'billing_details'], update),
  route('POST', '/v1/payment_methods/:id/attach', ['customer'], attach),
  route('POST', '/v1/payment_methods/:id/detach', [], detach),
  route('GET', '/v1/customers/:id/payment_methods', [...LIST_PARAMS, 'type'], (dialect, call) =>
    list(call, attached(dialect, existing(dialect, 'customer', call.id, 'customer', 404).id)),
  ),
]

/** The payment method, or a new one for a test token, as Stripe does it for `pm_card_visa`. */
function find(dialect: Dialect, id: string, param: string, status = 400): Stripe.PaymentMethod {
  const known = dialect.state.find('payment_method', id)
  if (known) return known
  if (!readToken(id)) throw missing('payment_method', id, param, status)
  return make(dialect, id)
}

/** How the card of a payment method behaves. */
export function behaviourOf({ state }: Dialect, paymentMethod: string): Behaviour {
  return readToken(state.tokenOf(paymentMethod) ?? paymentMethod) ?? readToken('pm_card_visa')!
}

function make({ state, livemode }: Dialect, token: string, own: Record<string, string> = {}) {
  const { card } = readToken(token)!
  const id = state.newId('pm')
  state.setToken(id, token)
  const made: Stripe.PaymentMethod = {
    id,
    object: 'payment_method',
    allow_redisplay: 'unspecified',
    billing_details: { address: null, email: null, name: null, phone: null, tax_id: null },
    card: {
      ...card,
      checks: { address_line1_check: null, address_postal_code_check: null, cvc_check: 'pass' },
      display_brand: card.brand,
      exp_month: 12,
      exp_year: 2034,
      fingerprint: `fp${card.brand}${card.last4}`,
      generated_from: null,
      networks: { available: [card.brand], preferred: null },
      regulated_status: 'unregulated',
      three_d_secure_usage: { supported: true },
      wallet: null,
    },
    created: state.now(),
    customer: null,
    customer_account: null,
    livemode,
    metadata: own,
    type: 'card',
  }
  return state.put(made)
}

function attached({ state }: Dialect, customer: string): Stripe.PaymentMethod[] {
  return state.related('payment_method', 'customer', customer)
}

function create(dialect: Dialect, call: Call): object {
  if (oneOf(call, 'type', ['card', 'sepa_debit']) === 'sepa_debit') return makeDebit(dialect, call)
  const token = within(call, 'card')?.params['token']
  // Card numbers are refused, as Stripe accepts them from its own pages only.
  if (typeof token !== 'string') {
    const message = 'Sending credit card numbers directly to the Stripe API is generally unsafe.'
    throw new StripeError(402, { type: 'card_error', message }, { isOutcome: true })
  }
  const known = token.replace(/^tok_/, 'pm_card_')
  if (!readToken(known)) throw missing('token', token, 'card[token]', 400)
  return make(dialect, known, metadata(call))
}

/** A bank account: it can be a customer's default, and no card payment can be made with it. */
function makeDebit(dialect: Dialect, call: Call): object {
  const { card: _none, ...made } = make(dialect, 'pm_card_visa', metadata(call))
  const sepa_debit = {
    bank_code: '37040044',
    branch_code: null,
    country: 'DE',
    fingerprint: 'fpDE89',
    generated_from: null,
    last4: '3000',
  }
  return dialect.state.put({ ...made, type: 'sepa_debit', sepa_debit } satisfies Stripe.PaymentMethod)
}

function update(dialect: Dialect, call: Call): object {
  const before = inPath(dialect, call, 'payment_method')
  const given = within(call, 'card')?.params ?? {}
  const changed: Stripe.PaymentMethod = { ...before, metadata: metadata(call, before.metadata) }
  if (before.card) {
    changed.card = {
      ...before.card,
      exp_month: Number(given['exp_month'] ?? before.card.exp_month),
      exp_year: Number(given['exp_year'] ?? before.card.exp_year),
    }
  }
  return dialect.emit('payment_method.updated', dialect.state.put(changed))
}

interface RenewedCard {
  last4?: string
  exp_month: number
  exp_year: number
}

/** The customer's bank issues a new card: Stripe gets its data from the networks, and the payment method stays. */
export function renewCard(dialect: Dialect, id: string, renewed: RenewedCard): Stripe.PaymentMethod {
  const before = existing(dialect, 'payment_method', id, 'id', 404)
  if (!before.card) throw missing('payment_method', id, 'id', 404)
  const changed: Stripe.PaymentMethod = { ...before, card: { ...before.card, ...renewed } }
  return dialect.emit('payment_method.automatically_updated', dialect.state.put(changed))
}

function attach(dialect: Dialect, call: Call): object {
  const customer = existing(dialect, 'customer', required(call, 'customer'), 'customer')
  if (customer.deleted)
    throw invalid(`No such customer: '${customer.id}'`, { code: 'resource_missing', param: 'customer' })
  return save(dialect, call.id, customer.id)
}

/** Attaches a payment method to a customer; one that is attached already stays as it is. */
export function save(dialect: Dialect, id: string, customer: string): Stripe.PaymentMethod {
  const before = find(dialect, id, 'payment_method')
  if (before.customer === customer) return before
  if (before.customer !== null) {
    throw invalid('The payment method you provided has already been attached to a customer.')
  }
  return dialect.emit('payment_method.attached', dialect.state.put({ ...before, customer }))
}

function detach(dialect: Dialect, call: Call): object {
  const before = inPath(dialect, call, 'payment_method')
  if (before.customer === null) {
    const message = 'The payment method you provided is not attached to a customer so detachment is impossible.'
    throw invalid(message)
  }
  const customer = dialect.state.find('customer', String(before.customer))
  if (customer && !customer.deleted && customer.invoice_settings.default_payment_method === before.id)
    dialect.state.put({
      ...customer,
      invoice_settings: { ...customer.invoice_settings, default_payment_method: null },
    })
  const changed = dialect.state.put({ ...before, customer: null })
  dialect.state.retire(changed.id)
  return dialect.emit('payment_method.detached', changed, { customer: before.customer })
}

/** Stripe lets no payment method be used again once it was detached, or used without a customer. */
export function usable(dialect: Dialect, id: string, customer: string | undefined): Stripe.PaymentMethod {
  const method = find(dialect, id, 'payment_method')
  if (method.customer !== null && method.customer !== customer) {
    const message = customer
      ? `The customer does not have a payment method with the ID ${id}. The payment method must be attached to the customer.`
      : `The PaymentMethod ${id} belongs to a customer. Please include the customer in the \`customer\` parameter.`
    throw invalid(message, { code: 'payment_method_customer_mismatch', param: 'payment_method' })
  }
  if (method.customer === null && dialect.state.isRetired(id)) {
    const message = `The provided PaymentMethod was previously used with a PaymentIntent without Customer attachment, or was detached from a Customer. It may not be used again.`
    throw invalid(message, { param: 'payment_method' })
  }
  return method
}
