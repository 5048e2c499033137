// The sentence for the customer about a declined charge, without internals, by the provider's reason code.

const TRY_LATER = 'Your bank could not process the payment. Please try again later.'
const LIMIT = "Your card's limit is reached. Please use another card."
const NOT_WITH_THIS_CARD = 'This payment is not possible with your card. Please use another card.'
const CARD_DATA = 'Your card cannot be used any more. Please use another card.'

// Stripe's decline codes, which the simulator uses too.
const SENTENCES = new Map<string, string>([
  ['insufficient_funds', 'Your card has insufficient funds.'],
  ['expired_card', 'Your card has expired.'],
  [
    'authentication_required',
    'Your bank asks you to confirm the payment, which is not possible here. Please use another card.',
  ],
  ...sentenceFor(
    TRY_LATER,
    'processing_error try_again_later issuer_not_available reenter_transaction approve_with_id',
  ),
  ...sentenceFor(LIMIT, 'card_velocity_exceeded withdrawal_count_limit_exceeded'),
  ...sentenceFor(
    NOT_WITH_THIS_CARD,
    'card_not_supported currency_not_supported transaction_not_allowed service_not_allowed',
  ),
  ...sentenceFor(CARD_DATA, 'incorrect_number incorrect_cvc incorrect_zip invalid_number invalid_cvc invalid_account'),
  ...sentenceFor(CARD_DATA, 'invalid_expiry_month invalid_expiry_year new_account_information_available'),
])

// Also for a card reported lost or stolen and for suspected fraud: the person who holds it must not learn that from us.
const DECLINED = 'Your card was declined.'

/** A sentence for the customer; `reasonCode` is `psp_reason_code` of the report. */
export function failedMessageForUser(reasonCode: string | null): string {
  return SENTENCES.get(reasonCode ?? '') ?? DECLINED
}

function sentenceFor(sentence: string, codes: string): [string, string][] {
  return codes.split(' ').map((code) => [code, sentence])
}
