// A new PaymentIntent with every field that Stripe's have.
import type { Stripe } from 'stripe'
import type { Dialect } from './call.ts'
import { nulls } from './nulls.ts'

export function newPaymentIntent({ state, livemode }: Dialect, amount: number, currency: string): Stripe.PaymentIntent {
  const id = state.newId('pi')
  return {
    id,
    object: 'payment_intent',
    ...nulls('allowed_payment_method_types application application_fee_amount automatic_payment_methods'),
    ...nulls('canceled_at cancellation_reason customer customer_account description'),
    ...nulls('excluded_payment_method_types last_payment_error latest_charge managed_payments next_action'),
    ...nulls('on_behalf_of payment_method payment_method_configuration_details payment_record processing'),
    ...nulls('receipt_email review setup_future_usage shipping source statement_descriptor'),
    ...nulls('statement_descriptor_suffix transfer_data transfer_group'),
    amount,
    amount_capturable: 0,
    amount_details: { tip: {} },
    amount_received: 0,
    capture_method: 'automatic_async',
    client_secret: `${id}_secret_${state.newId('s').slice(2)}`,
    confirmation_method: 'automatic',
    created: state.now(),
    currency,
    livemode,
    metadata: {},
    payment_method_options: {},
    payment_method_types: ['card'],
    status: 'requires_payment_method',
  }
}
