// What the customer is told of a declined charge: a sentence without internals, by the provider's reason code.

const SENTENCES: Record<string, string> = {
  insufficient_funds: 'Your card has insufficient funds.',
  expired_card: 'Your card has expired.',
  processing_error: 'Your bank could not process the payment. Please try again later.',
  authentication_required:
    'Your bank asks you to confirm the payment, which is not possible here. Please use another card.',
}

// Also for a card reported lost or stolen: whoever holds it shall not learn that from us.
const DECLINED = 'Your card was declined.'

export function failedMessageForUser(reasonCode: string | null): string {
  return (reasonCode !== null && Object.hasOwn(SENTENCES, reasonCode) && SENTENCES[reasonCode]) || DECLINED
}
