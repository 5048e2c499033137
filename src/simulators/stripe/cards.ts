// Stripe's public test cards, and control tokens for behaviour that no test card has; the token decides how a card behaves.

export interface Card {
  brand: string
  last4: string
  funding: 'credit' | 'debit' | 'prepaid'
  country: string
}

export interface Decline {
  code: string
  decline_code: string
  advice_code?: 'confirm_card_data' | 'do_not_try_again' | 'try_again_later'
  message: string
}

/** The calls that a control token can disturb. */
export type Stage = 'prepare' | 'confirm' | 'cancel' | 'refund'

export interface Fault {
  stage: Stage
  /** `*_before`: nothing was done; `*_after`: it was done, the response is lost; `late`: done after `ms`, connection broken at once. */
  kind:
    | 'drop_before'
    | 'drop_after'
    | 'error_before'
    | 'error_after'
    | 'late'
    | 'slow'
    | 'busy'
    | 'locked'
    | 'in_use'
    | 'forbidden'
  ms: number
  /** That the key lacks, for `forbidden`. */
  permission?: string
  /** Only on the first call of this stage for a payment. */
  once: boolean
}

export interface Behaviour {
  card: Card
  decline?: Decline
  requiresAuthentication?: boolean
  /** The payment stays `processing` for this time, then succeeds. */
  processingMs?: number
  /** The charge enters the account's balance this long after it succeeded. */
  balanceAfterMs?: number
  /** Refunds stay `pending` for this time, then succeed. */
  refundPendingMs?: number
  /** Refunds succeed, and fail after this time. */
  refundFailsAfterMs?: number
  /** The charge succeeds and is disputed for this reason. */
  dispute?: 'fraudulent' | 'product_not_received'
  fault?: Fault
}

const visa: Card = { brand: 'visa', last4: '4242', funding: 'credit', country: 'US' }
const DECLINED = 'Your card was declined.'

// Numbers, codes and sentences as Stripe's page "Testing" publishes them.
const behaviours: Record<string, Behaviour> = {
  visa: { card: visa },
  visa_debit: { card: { ...visa, last4: '5556', funding: 'debit' } },
  mastercard: { card: { ...visa, brand: 'mastercard', last4: '4444' } },
  mastercard_prepaid: { card: { ...visa, brand: 'mastercard', last4: '5100', funding: 'prepaid' } },
  amex: { card: { ...visa, brand: 'amex', last4: '8431' } },
  discover: { card: { ...visa, brand: 'discover', last4: '9424' } },
  jcb: { card: { ...visa, brand: 'jcb', last4: '0505', country: 'JP' } },
  chargeDeclined: declined('0002', 'card_declined', 'generic_decline', DECLINED),
  chargeDeclinedInsufficientFunds: declined(
    '9995',
    'card_declined',
    'insufficient_funds',
    'Your card has insufficient funds.',
    'try_again_later',
  ),
  chargeDeclinedLostCard: declined('9987', 'card_declined', 'lost_card', DECLINED, 'do_not_try_again'),
  chargeDeclinedStolenCard: declined('9979', 'card_declined', 'stolen_card', DECLINED, 'do_not_try_again'),
  chargeDeclinedExpiredCard: declined(
    '0069',
    'expired_card',
    'expired_card',
    'Your card has expired.',
    'confirm_card_data',
  ),
  chargeDeclinedIncorrectCvc: declined(
    '0127',
    'incorrect_cvc',
    'incorrect_cvc',
    "Your card's security code is incorrect.",
    'confirm_card_data',
  ),
  chargeDeclinedProcessingError: declined(
    '0119',
    'processing_error',
    'processing_error',
    'An error occurred while processing your card. Try again in a little bit.',
    'try_again_later',
  ),
  chargeDeclinedVelocityLimitExceeded: declined(
    '6975',
    'card_declined',
    'card_velocity_exceeded',
    'Your card was declined for making repeated attempts too frequently or exceeding its amount limit.',
  ),
  chargeCustomerFail: declined('0341', 'card_declined', 'generic_decline', DECLINED),
  radarBlock: declined('0019', 'card_declined', 'fraudulent', DECLINED, 'do_not_try_again'),
  authenticationRequired: { card: { ...visa, last4: '3184' }, requiresAuthentication: true },
  threeDSecure2Required: { card: { ...visa, last4: '3220' }, requiresAuthentication: true },
  refundFail: { card: { ...visa, last4: '5126' }, refundFailsAfterMs: 300 },
  pendingRefund: { card: { ...visa, last4: '7726' }, refundPendingMs: 300 },
  createDispute: { card: { ...visa, last4: '0259' }, dispute: 'fraudulent' },
  createDisputeProductNotReceived: { card: { ...visa, last4: '2685' }, dispute: 'product_not_received' },
}

const FAULT =
  /^(prepare|confirm|cancel|refund)_(drop_before|drop_after|error_before|error_after|busy|locked|in_use|(?:late|slow)_[0-9]{1,9}ms)(_once)?$/
const TIMED = /^(processing|balance_after|refund_pending|refund_fails_after)_([0-9]{1,12})ms$/

/** How cards made from this token behave; undefined for a token that does not exist. */
export function readToken(token: string): Behaviour | undefined {
  if (token.startsWith('pm_card_')) return readTestCard(token.slice('pm_card_'.length))
  return token.startsWith('pm_sim_') ? readControlToken(token.slice('pm_sim_'.length)) : undefined
}

function readTestCard(name: string): Behaviour | undefined {
  if (Object.hasOwn(behaviours, name)) return behaviours[name]
  // Most declines have a second name: pm_card_visa_chargeDeclined.
  const bare = name.replace(/^visa_(?=chargeDeclined)/, '')
  return Object.hasOwn(behaviours, bare) ? behaviours[bare] : undefined
}

/** `pm_sim_confirm_drop_after`, `pm_sim_prepare_late_300ms_once`, `pm_sim_decline_do_not_honor`, `pm_sim_processing_500ms`. */
function readControlToken(name: string): Behaviour | undefined {
  const decline = /^decline_([a-z_]{1,60})$/.exec(name)?.[1]
  if (decline) return declined('0002', 'card_declined', decline, DECLINED)
  const [, timed, ms] = TIMED.exec(name) ?? []
  if (timed === 'processing') return { card: visa, processingMs: Number(ms) }
  if (timed === 'balance_after') return { card: visa, balanceAfterMs: Number(ms) }
  if (timed === 'refund_pending') return { card: visa, refundPendingMs: Number(ms) }
  if (timed === 'refund_fails_after') return { card: visa, refundFailsAfterMs: Number(ms) }
  const [, stage, what, once] = FAULT.exec(name) ?? []
  if (stage === undefined || what === undefined) return undefined
  const [, kind, digits] = /^(late|slow)_([0-9]+)ms$/.exec(what) ?? [undefined, what, '0']
  return {
    card: visa,
    fault: { stage: stage as Stage, kind: kind as Fault['kind'], ms: Number(digits), once: once !== undefined },
  }
}

function declined(
  last4: string,
  code: string,
  decline_code: string,
  message: string,
  advice_code?: Decline['advice_code'],
): Behaviour {
  const decline: Decline = { code, decline_code, message, ...(advice_code && { advice_code }) }
  return { card: { ...visa, last4 }, decline }
}
