// Takes the fields of the transaction report from Stripe's objects: the card, 3-D Secure, and the reason of a decline.
import { noDetails, type PaymentDetails } from '../provider.ts'
import { digitsOf, fieldsOf, textOf } from '../transport.ts'
import type { Fields } from './api.ts'
import { type Intent, readTime } from './objects.ts'

/** Decline codes after which the same card cannot be charged again; used if Stripe sends no advice code. */
const HARD = new Set([
  'currency_not_supported',
  'card_not_supported',
  'fraudulent',
  'invalid_account',
  'lost_card',
  'pickup_card',
  'restricted_card',
  'revocation_of_all_authorizations',
  'revocation_of_authorization',
  'security_violation',
  'stolen_card',
  'stop_payment_order',
])

type Reason = Pick<
  PaymentDetails,
  'psp_reason_message' | 'psp_reason_type' | 'psp_reason_code' | 'psp_reason_decline_type'
>

/** The details of a payment and its latest charge; the reason is set if the payment failed. */
export function detailsOf(intent: Intent): PaymentDetails {
  const { charge, lastError } = intent
  const method = fieldsOf(charge['payment_method_details'])
  const card = fieldsOf(method['card'] ?? fieldsOf(lastError?.['payment_method'])['card'])
  return {
    ...noDetails,
    psp_transaction_id: intent.id,
    psp_transaction_type: 'sale',
    psp_status: textOf(charge['status']) ?? intent.status,
    psp_date: charge['created'] === undefined ? intent.createdAt : readTime(charge['created']),
    psp_card_token_type: 'saved_card',
    pm_type: textOf(method['type']) ?? 'card',
    is_vaulted: true,
    ...cardDetails(card),
    ...(intent.status === 'succeeded' ? {} : reasonOf(intent)),
  }
}

export function cardDetails(card: Fields): Partial<PaymentDetails> {
  const secure = fieldsOf(card['three_d_secure'])
  const flow = textOf(secure['authentication_flow'])
  return {
    network: textOf(card['network']) ?? textOf(card['brand']),
    threeds_challenge_issued: flow === null ? false : flow === 'challenge',
    threeds_protocol_version: textOf(secure['version']),
    threeds_response_code: textOf(secure['result']),
    threeds_reason_code: textOf(secure['result_reason']),
    pm_data_first6: digitsOf(card['iin'], 6),
    pm_data_last4: digitsOf(card['last4'], 4),
    pm_data_expiration_date: expirationOf(card),
    pm_data_is_network_tokenized: fieldsOf(card['network_token'])['used'] === true,
    pm_data_bin_account_funding_type: textOf(card['funding']),
    pm_data_bin_issuer_name: textOf(card['issuer']),
    pm_data_bin_issuer_country_code: textOf(card['country']),
  }
}

/** `12/2034`. */
function expirationOf({ exp_month, exp_year }: Fields): string | null {
  if (!Number.isSafeInteger(exp_month) || !Number.isSafeInteger(exp_year)) return null
  return `${String(exp_month).padStart(2, '0')}/${exp_year}`
}

function reasonOf({ status, lastError, charge }: Intent): Reason {
  if (lastError) return reasonOfError(lastError)
  if (status === 'requires_action') {
    return reasonOfError({ code: 'authentication_required', message: 'The bank asks for authentication.' })
  }
  // Some responses lack `last_payment_error`; the failed charge contains the same information.
  const outcome = fieldsOf(charge['outcome'])
  const { failure_code: code, failure_message: message } = charge
  return reasonOfError({
    type: outcome['type'],
    code,
    message,
    decline_code: outcome['reason'],
    advice_code: outcome['advice_code'],
  })
}

/** The reason in an `error` object: its decline code, else its code. Stripe's advice code decides whether a retry may help. */
export function reasonOfError(error: Fields): Reason {
  const code = textOf(error['decline_code']) ?? textOf(error['code'])
  return {
    psp_reason_message: textOf(error['message']),
    psp_reason_type: textOf(error['type']) ?? 'card_error',
    psp_reason_code: code ?? 'unknown',
    psp_reason_decline_type: declineType(error['advice_code'], code),
  }
}

function declineType(advice: unknown, code: string | null): 'hard' | 'soft' {
  if (advice === 'do_not_try_again') return 'hard'
  if (advice === 'try_again_later' || advice === 'confirm_card_data') return 'soft'
  return code !== null && HARD.has(code) ? 'hard' : 'soft'
}
