// Charges: one for each attempt to confirm a payment; they have the card's details, and the refunded and disputed amounts.
import type { Stripe } from 'stripe'
import { postCharge } from './balance-transactions.ts'
import { type Dialect, describing, route } from './call.ts'
import type { Decline } from './cards.ts'
import { readRoutes } from './lists.ts'
import { nulls } from './nulls.ts'

type Charge = Stripe.Charge

export const chargeRoutes = [
  ...readRoutes('/v1/charges', 'charge', ['customer', 'payment_intent']),
  route('POST', '/v1/charges/:id', ['metadata', 'description'], describing('charge')),
]

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
    ...nulls('application application_fee application_fee_amount balance_transaction'),
    ...nulls('failure_balance_transaction on_behalf_of receipt_email receipt_number receipt_url review'),
    ...nulls('shipping source source_transfer statement_descriptor statement_descriptor_suffix transfer_data'),
    ...nulls('transfer_group'),
    billing_details: method.billing_details,
    calculated_statement_descriptor: 'PLAY MONEY',
    captured: !decline,
    created: state.now(),
    currency: intent.currency,
    customer: intent.customer,
    description: intent.description,
    disputed: false,
    failure_code: decline?.code ?? null,
    failure_message: decline?.message ?? null,
    fraud_details: {},
    livemode,
    metadata: intent.metadata,
    outcome: outcomeOf(decline),
    paid: !decline,
    payment_intent: intent.id,
    payment_method: method.id,
    payment_method_details: { type: 'card', card: cardDetails(method, intent.amount) },
    refunded: false,
    status: decline ? 'failed' : 'succeeded',
  }
  return decline ? state.put(made) : postCharge(dialect, state.put(made))
}

function outcomeOf(decline: Decline | undefined): Stripe.Charge.Outcome {
  return {
    advice_code: decline?.advice_code ?? null,
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
    ...nulls('electronic_commerce_indicator installments mandate three_d_secure transaction_link_id wallet'),
    exp_month: card?.exp_month ?? 12,
    exp_year: card?.exp_year ?? 2034,
    fingerprint: card?.fingerprint ?? null,
    funding: card?.funding ?? null,
    last4: card?.last4 ?? null,
    network: card?.brand ?? null,
    network_token: { used: false },
    network_transaction_id: '100000000000000',
    regulated_status: 'unregulated',
  }
}
