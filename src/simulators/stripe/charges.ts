// Charges: one for each attempt to confirm a payment; they have the card's details, and the refunded and disputed amounts.
import type { Stripe } from 'stripe'
import { postCharge } from './balance-transactions.ts'
import { type Call, type Dialect, inPath, metadata, route, text } from './call.ts'
import { readRoutes } from './lists.ts'

type Charge = Stripe.Charge

export const chargeRoutes = [
  ...readRoutes('/v1/charges', 'charge', ['customer', 'payment_intent']),
  route('POST', '/v1/charges/:id', ['metadata', 'description'], update),
]

function update(dialect: Dialect, call: Call): object {
  const before = inPath(dialect, call, 'charge')
  const description = text(call, 'description') ?? before.description
  return dialect.state.put({ ...before, description, metadata: metadata(call, before.metadata) })
}

interface Decline {
  code: string
  decline_code: string
  advice_code?: string
  message: string
}

/** Charges the payment's card, or fails to. */
export function makeCharge(dialect: Dialect, intent: Stripe.PaymentIntent, decline?: Decline): Charge {
  const { state, livemode } = dialect
  const method = state.find('payment_method', intent.payment_method as string)!
  const made: Charge = {
    id: state.newId('ch'),
    object: 'charge',
    amount: intent.amount,
    amount_captured: decline ? 0 : intent.amount,
    amount_refunded: 0,
    application: null,
    application_fee: null,
    application_fee_amount: null,
    balance_transaction: null,
    billing_details: method.billing_details,
    calculated_statement_descriptor: 'PLAY MONEY',
    captured: !decline,
    created: state.now(),
    currency: intent.currency,
    customer: intent.customer,
    description: intent.description,
    disputed: false,
    failure_balance_transaction: null,
    failure_code: decline?.code ?? null,
    failure_message: decline?.message ?? null,
    fraud_details: {},
    livemode,
    metadata: intent.metadata,
    on_behalf_of: null,
    outcome: outcomeOf(decline),
    paid: !decline,
    payment_intent: intent.id,
    payment_method: method.id,
    payment_method_details: { type: 'card', card: cardDetails(method, intent.amount) },
    receipt_email: null,
    receipt_number: null,
    receipt_url: null,
    refunded: false,
    review: null,
    shipping: null,
    source: null,
    source_transfer: null,
    statement_descriptor: null,
    statement_descriptor_suffix: null,
    status: decline ? 'failed' : 'succeeded',
    transfer_data: null,
    transfer_group: null,
  }
  return decline ? state.put(made) : postCharge(dialect, state.put(made))
}

function outcomeOf(decline: Decline | undefined): Stripe.Charge.Outcome {
  return {
    advice_code: (decline?.advice_code as Stripe.Charge.Outcome.AdviceCode | undefined) ?? null,
    network_advice_code: null,
    network_decline_code: decline ? '05' : null,
    network_status: decline ? 'declined_by_network' : 'approved_by_network',
    reason: decline?.decline_code ?? null,
    risk_level: 'normal',
    risk_score: 20,
    seller_message: decline ? 'The bank did not return any further details with this decline.' : 'Payment complete.',
    type: decline ? 'issuer_declined' : 'authorized',
  }
}

function cardDetails({ card }: Stripe.PaymentMethod, amount: number): Stripe.Charge.PaymentMethodDetails.Card {
  return {
    amount_authorized: amount,
    authorization_code: '123456',
    brand: card?.brand ?? null,
    checks: { address_line1_check: null, address_postal_code_check: null, cvc_check: null },
    country: card?.country ?? null,
    electronic_commerce_indicator: null,
    exp_month: card?.exp_month ?? 12,
    exp_year: card?.exp_year ?? 2034,
    fingerprint: card?.fingerprint ?? null,
    funding: card?.funding ?? null,
    installments: null,
    last4: card?.last4 ?? null,
    mandate: null,
    network: card?.brand ?? null,
    network_token: { used: false },
    network_transaction_id: '100000000000000',
    regulated_status: 'unregulated',
    three_d_secure: null,
    transaction_link_id: null,
    wallet: null,
  }
}
