// Takes the fields of the transaction report from Primer's payments: the card, its BIN, 3-D Secure, and the reason of a decline.
import type { FailedAttempt } from '../outcomes.ts'
import { noDetails, type PaymentDetails } from '../provider.ts'
import { digitsOf, fieldsOf, textOf } from '../transport.ts'
import type { Fields } from './api.ts'
import type { Payment, Transaction } from './objects.ts'

type Reason = Pick<
  PaymentDetails,
  'psp_reason_message' | 'psp_reason_type' | 'psp_reason_code' | 'psp_reason_decline_type'
>

/** The details of a payment; the reason is set if it failed. */
export function detailsOf(payment: Payment, hasFailed: boolean): PaymentDetails {
  const deciding = decidingSale(payment)
  return {
    ...common(payment),
    psp_transaction_id: payment.id,
    psp_transaction_type: 'sale',
    psp_status: payment.status,
    psp_date: deciding?.date ?? payment.date,
    psp_card_token_type: textOf(payment.body['cardTokenType']) ?? deciding?.cardTokenType ?? null,
    ...(hasFailed && reasonOf(payment, deciding)),
  }
}

/** The attempts before the one that decided, and whether that one was made at another processor than the first. */
export function attemptsOf(payment: Payment): { failedAttempts: FailedAttempt[]; isFallback: boolean } {
  const { sales } = payment
  const deciding = decidingSale(payment)
  const isFallback = (sale: Transaction | undefined) =>
    sale !== undefined && sale !== sales[0] && sale.processor !== sales[0]!.processor
  const failed = sales.filter((sale) => sale !== deciding && FAILED.has(sale.status))
  const failedAttempts = failed.map((sale) => ({
    isFallback: isFallback(sale),
    details: {
      ...common(payment),
      psp_transaction_id: sale.processorTransactionId,
      psp_transaction_type: 'sale',
      psp_status: sale.status,
      psp_date: sale.date,
      psp_card_token_type: sale.cardTokenType,
      ...reasonOfStatus(sale.statusReason ?? {}, sale.status),
    },
  }))
  return { failedAttempts, isFallback: isFallback(deciding) }
}

const FAILED = new Set(['DECLINED', 'FAILED', 'CANCELLED'])

/** The attempt that decided a payment: the latest with its status, else the latest. */
const decidingSale = ({ sales, status }: Payment): Transaction | undefined =>
  sales.findLast((sale) => sale.status === status) ?? sales.at(-1)

/** Whether the customer was present; undefined if Primer does not say. */
export function isCit({ body }: Payment): boolean | undefined {
  const type = textOf(fieldsOf(body['paymentMethod'])['paymentType'])
  if (type === 'FIRST_PAYMENT' || type === 'ECOMMERCE') return true
  return type === 'SUBSCRIPTION' || type === 'UNSCHEDULED' ? false : undefined
}

/** The details that a payment's attempts and refunds share. */
export function common({ body }: Payment): PaymentDetails {
  const method = fieldsOf(body['paymentMethod'])
  const secure = fieldsOf(method['threeDSecureAuthentication'])
  return {
    ...noDetails,
    pm_type: textOf(method['paymentMethodType']),
    authorization_type: textOf(method['authorizationType']),
    is_vaulted: flagOf(method['isVaulted']),
    threeds_response_code: textOf(secure['responseCode']),
    threeds_reason_code: textOf(secure['reasonCode']),
    threeds_reason_text: textOf(secure['reasonText']),
    threeds_protocol_version: textOf(secure['protocolVersion']),
    threeds_challenge_issued: flagOf(secure['challengeIssued']),
    ...cardDetails(fieldsOf(method['paymentMethodData'])),
  }
}

function cardDetails(card: Fields): Partial<PaymentDetails> {
  const bin = fieldsOf(card['binData'])
  return {
    network: textOf(card['network']) ?? textOf(bin['network']),
    pm_data_first6: digitsOf(card['first6Digits'], 6),
    pm_data_last4: digitsOf(card['last4Digits'], 4),
    pm_data_expiration_date: expirationOf(card),
    pm_data_is_network_tokenized: flagOf(card['isNetworkTokenized']),
    pm_data_bin_account_funding_type: textOf(bin['accountFundingType']),
    pm_data_bin_account_number_type: textOf(bin['accountNumberType']),
    pm_data_bin_issuer_name: textOf(bin['issuerName']),
    pm_data_bin_issuer_country_code: textOf(bin['issuerCountryCode']),
    pm_data_bin_issuer_currency_code: textOf(bin['issuerCurrencyCode']),
    pm_data_bin_prepaid_reloadable_indicator: textOf(bin['prepaidReloadableIndicator']),
    pm_data_bin_product_code: textOf(bin['productCode']),
    pm_data_bin_product_name: textOf(bin['productName']),
    pm_data_bin_product_usage_type: textOf(bin['productUsageType']),
    pm_data_bin_regional_restriction: textOf(bin['regionalRestriction']),
  }
}

/** The example of a notification has `"false"` as a string. */
function flagOf(value: unknown): boolean | null {
  if (value === true || value === 'true') return true
  return value === false || value === 'false' ? false : null
}

/** `12/2034`. */
function expirationOf({ expirationMonth, expirationYear }: Fields): string | null {
  const month = digitsOf(expirationMonth, 2)
  const year = digitsOf(expirationYear, 4)
  return month && year ? `${month}/${year}` : null
}

/** The reason that a cancellation of ours has, when a payment needed the customer. */
export const AUTHENTICATION_REQUIRED = 'AUTHENTICATION_REQUIRED'

function reasonOf(payment: Payment, deciding: Transaction | undefined): Reason {
  const told = payment.statusReason ?? deciding?.statusReason
  if (told) return reasonOfStatus(told, payment.status)
  if (payment.needsAction || deciding?.reason === AUTHENTICATION_REQUIRED) return authenticationRequired
  return reasonOfStatus({}, payment.status)
}

const authenticationRequired: Reason = {
  psp_reason_message: 'The bank asks for authentication.',
  psp_reason_type: 'ISSUER_DECLINED',
  psp_reason_code: AUTHENTICATION_REQUIRED,
  psp_reason_decline_type: 'soft',
}

/** The reason in a `statusReason`. Primer's decline type decides whether a retry may help, else the action that it advises. */
export function reasonOfStatus(reason: Fields, status: string): Reason {
  const type = textOf(reason['type'])
  const message = textOf(reason['message']) ?? textOf(reason['paymentMethodResultMessage'])
  return {
    psp_reason_message: message ?? `The payment is ${status}.`,
    psp_reason_type: type ?? status,
    psp_reason_code: textOf(reason['code']) ?? type ?? 'UNKNOWN',
    psp_reason_decline_type: declineType(reason),
  }
}

function declineType({ declineType, advisedAction }: Fields): 'hard' | 'soft' {
  if (declineType === 'HARD_DECLINE') return 'hard'
  if (declineType === 'SOFT_DECLINE') return 'soft'
  return advisedAction === 'DO_NOT_RETRY' || advisedAction === 'STOP_ALL_PAYMENTS' ? 'hard' : 'soft'
}

/** The reason for a request that Primer rejected. */
export function reasonOfError(error: Fields): Reason {
  return {
    psp_reason_message: textOf(error['description']) ?? 'Primer rejected the request.',
    psp_reason_type: 'REQUEST_REJECTED',
    psp_reason_code: textOf(error['errorId']) ?? 'UNKNOWN',
    psp_reason_decline_type: 'soft',
  }
}
