// The response for a charge, the data of its events, and the sentences for declined customers.
import type { Event } from '../../../core/events/outbox.ts'
import { readJson } from '../../../lib/json/read.ts'
import { Type } from '../../../lib/shape/schema.ts'
import { jsonAmount } from '../amount.ts'
import type { Order, Status } from './row.ts'

export const oneOffChargeOut = Type.Named('OneOffChargeOut', {
  action_required_token: Type.Literal('', {
    description: 'Always empty: a custom charge has no authentication step.',
  }),
  checkout_status: {
    type: 'string',
    enum: ['processing', 'succeeded', 'failed', 'cancelled'],
    examples: ['succeeded'],
    description:
      '`processing`: the outcome is not known yet; send the request again with the same key. `succeeded`: charged. `failed`: declined. `cancelled`: nothing was charged, and nothing will be. The last three are final.',
  },
  failed_message_for_user: Type.String({
    description: 'Message for the customer; empty unless the charge failed.',
    examples: [''],
  }),
  order_id: {
    type: ['string', 'null'],
    format: 'uuid',
    description: 'Identifier of the order; never null.',
    examples: ['0198c1de-6a3c-7cc1-a9d4-3f1b7e5a9c20'],
  },
  idempotent_replay: Type.Boolean({
    description: 'Whether this is the state of an earlier charge with the same key. This request charged nothing.',
    default: false,
  }),
})

/** The `data` of a charge's event: the response and the request. */
export const chargeEventData = Type.Named('ChargeEventData', {
  ...oneOffChargeOut.properties,
  external_id: Type.String({ description: 'Identifier of the user.' }),
  amount: Type.Number({ description: 'Amount in major units.', examples: [10.5] }),
  currency_code: Type.String({ description: 'ISO 4217 code.', examples: ['USD'] }),
  client_metadata: {
    type: ['object', 'null'],
    title: 'ClientMetadata',
    additionalProperties: true,
    description: 'Metadata of the request; null if there was none, and after an erasure.',
  },
})

export interface ChargeResponse {
  action_required_token: ''
  checkout_status: Status
  failed_message_for_user: string
  order_id: string
  idempotent_replay: boolean
}

export function chargeResponse(order: Order, idempotent_replay: boolean): ChargeResponse {
  const { status, failed_message_for_user, order_id } = order
  return {
    action_required_token: '',
    checkout_status: status,
    failed_message_for_user,
    order_id,
    idempotent_replay,
  }
}

type Settled = Order & {
  profile_id: string | null
  status: 'succeeded' | 'failed' | 'cancelled'
  client_metadata: string | null
}

/** The event of a settled charge. */
export function chargeEvent(order: Settled): Event {
  const { external_id, amount, currency_code, client_metadata, profile_id } = order
  const data = {
    ...chargeResponse(order, false),
    external_id,
    amount: jsonAmount(amount),
    currency_code,
    client_metadata: client_metadata === null ? null : readJson(client_metadata, { exact: true }),
  }
  return { type: `charge.${order.status}`, object_id: order.order_id, profile_id, data }
}

const AUTHENTICATION = 'Your bank asks you to confirm the payment, which is not possible here. Please use another card.'
const TRY_LATER = 'Your bank could not process the payment. Please try again later.'
const LIMIT = "Your card's limit is reached. Please use another card."
const NOT_WITH_THIS_CARD = 'This payment is not possible with your card. Please use another card.'
const CARD_DATA = 'Your card can no longer be used. Please use another card.'

// Decline codes of Stripe, which the simulator uses too, and of Primer, in small letters.
const SENTENCES = new Map<string, string>([
  ['insufficient_funds', 'Your card has insufficient funds.'],
  ...sentenceFor('Your card has expired.', 'expired_card expired_payment_method'),
  ...sentenceFor(
    AUTHENTICATION,
    'authentication_required payment_intent_action_required requires_action_not_handled payment_intent_authentication_failure',
  ),
  ...sentenceFor(
    TRY_LATER,
    'processing_error try_again_later card_decline_rate_limit_exceeded issuer_not_available issuer_temporarily_unavailable reenter_transaction approve_with_id',
  ),
  ...sentenceFor(LIMIT, 'card_velocity_exceeded withdrawal_count_limit_exceeded withdrawal_limit_exceeded'),
  ...sentenceFor(
    NOT_WITH_THIS_CARD,
    'card_not_supported currency_not_supported transaction_not_allowed service_not_allowed',
  ),
  ...sentenceFor(
    CARD_DATA,
    'incorrect_number incorrect_cvc incorrect_zip incorrect_postal_code invalid_number invalid_card_number invalid_cvc invalid_account',
  ),
  ...sentenceFor(CARD_DATA, 'invalid_expiry_month invalid_expiry_year new_account_information_available'),
])

// Also for a card reported lost or stolen and for suspected fraud: the person who holds it must not learn that from us.
const DECLINED = 'Your card was declined.'

/** The sentence for the customer about a declined charge, without internals; `reasonCode` is `psp_reason_code` of the report. */
export function failedMessageForUser(reasonCode: string | null): string {
  return SENTENCES.get(reasonCode?.toLowerCase() ?? '') ?? DECLINED
}

function sentenceFor(sentence: string, codes: string): [string, string][] {
  return codes.split(' ').map((code) => [code, sentence])
}
