// Random payments of every shape that Primer's published types allow, and of some that only its examples have.
import type { Random } from '../../../../src/lib/seeded-random.ts'

// The enumerations of the OpenAPI document for version 2.4, each with a value that it does not have.
const STATUS = 'PENDING FAILED AUTHORIZED SETTLING PARTIALLY_SETTLED SETTLED DECLINED CANCELLED DISPUTED'.split(' ')
const REASON_TYPE = 'APPLICATION_ERROR GATEWAY_REJECTED GATEWAY_TIMEOUT ISSUER_DECLINED OTHER'.split(' ')
const DECLINE_TYPE = ['SOFT_DECLINE', 'HARD_DECLINE', 'OTHER']
const CODE =
  'ERROR INVALID_CARD_NUMBER EXPIRED_CARD LOST_OR_STOLEN_CARD SUSPECTED_FRAUD UNKNOWN DECLINED REFER_TO_CARD_ISSUER DO_NOT_HONOR INSUFFICIENT_FUNDS WITHDRAWAL_LIMIT_EXCEEDED ISSUER_TEMPORARILY_UNAVAILABLE AUTHENTICATION_REQUIRED NEW_CODE'.split(
    ' ',
  )
const ACTION = 'RETRY_LATER UPDATE_DATA DO_NOT_RETRY STOP_ALL_PAYMENTS'.split(' ')
const PAYMENT_TYPE = 'FIRST_PAYMENT ECOMMERCE SUBSCRIPTION UNSCHEDULED OTHER'.split(' ')
const METHOD = 'PAYMENT_CARD PAYPAL GOCARDLESS KLARNA APPLE_PAY GOOGLE_PAY NEW_METHOD'.split(' ')
const CARD_TOKEN = ['CARD_PAN', 'NETWORK_TOKEN', 'PROCESSOR_TOKEN', 'OTHER']
const THREE_DS = 'NOT_PERFORMED SKIPPED AUTH_SUCCESS AUTH_FAILED CHALLENGE METHOD OTHER'.split(' ')
const CURRENCY = 'USD EUR JPY KWD GBP'.split(' ')

// biome-ignore lint/suspicious/noExplicitAny: objects of every shape, also wrong ones.
export type Json = Record<string, any>

/** @param known the ids that Tundish gives; half of the payments have them */
export function randomPayment(random: Random, known: { key: string; reference: string }): Json {
  const { pick, chance, integer } = random
  /** Present, absent or null. */
  const may = <T>(name: string, value: () => T): Json => {
    const kind = random.next()
    return kind < 0.7 ? { [name]: value() } : kind < 0.85 ? {} : { [name]: null }
  }
  const date = () => {
    const at = new Date(
      Date.UTC(2026, integer(0, 10), integer(1, 28), integer(0, 23), integer(0, 59), integer(0, 59), integer(0, 999)),
    )
    const text = at.toISOString()
    return pick([
      text,
      text.replace('Z', ''),
      text.replace('Z', '123'),
      text.replace(/\.\d+Z/, ''),
      text.replace('Z', '+02:00'),
    ])
  }
  const statusReason = () => ({
    type: pick(REASON_TYPE),
    ...may('declineType', () => pick(DECLINE_TYPE)),
    ...may('code', () => pick(CODE)),
    ...may('message', () => pick(['Declined', '', 'x'.repeat(5_000), '\u0000', '\ud800'])),
    ...may('paymentMethodResultMessage', () => 'Closed account'),
    ...may('paymentMethodAdviceCode', () => '24'),
    ...may('advisedAction', () => pick(ACTION)),
  })
  const currencyCode = pick(CURRENCY)
  const amount = chance(0.05) ? 0 : integer(1, 10_000_000)
  const orderId = chance(0.8) ? known.key : `shop-${integer(1, 99)}`
  const transaction = (type: 'SALE' | 'REFUND' | 'OTHER', status = pick(STATUS), of = amount): Json => {
    // The schema and its list of required fields name these differently, and the examples mix both.
    const long = chance(0.5)
    return {
      ...(long ? { transactionType: type, processorStatus: status } : { type, processorStatus: status }),
      ...(chance(0.1) && { processorStatus: undefined, status }),
      ...(chance(0.9) ? { amount: of, currencyCode } : {}),
      ...may('processorName', () => pick(['STRIPE', 'ADYEN'])),
      ...may('processorMerchantId', () => pick(['acct_1', 'shop'])),
      ...may('processorTransactionId', () => '54c4eb5b3ef8a'),
      ...may('date', date),
      ...may('orderId', () => (type === 'REFUND' && chance(0.5) ? 'f'.repeat(64) : orderId)),
      ...may('cardTokenType', () => pick(CARD_TOKEN)),
      ...may('reason', () => pick(['Customer returned it.', `tundish_refund=${known.reference}`])),
      ...may('processorStatusReason', statusReason),
      ...may('events', () => []),
    }
  }
  const status = pick(STATUS)
  const sales = Array.from({ length: integer(0, 3) }, (_, n, all = 3) =>
    transaction('SALE', n === all - 1 || chance(0.5) ? status : pick(STATUS)),
  )
  const refunds = Array.from({ length: chance(0.3) ? integer(1, 3) : 0 }, () =>
    transaction('REFUND', undefined, integer(1, Math.max(1, amount))),
  )
  return {
    id: `pay${integer(1, 1_000_000)}`,
    status,
    amount,
    currencyCode,
    ...may('date', date),
    ...may('dateUpdated', date),
    ...may('orderId', () => orderId),
    ...may('cardTokenType', () => pick(CARD_TOKEN)),
    ...may('customerId', () => 'customer-123'),
    ...may('customer', () => ({ emailAddress: 'ada@example.com' })),
    ...may('order', () => ({ lineItems: [], countryCode: 'AW' })),
    ...may('metadata', () => ({ tundish_order: known.reference, tundish_key: known.key, productId: 123 })),
    ...may('paymentMethod', () => ({
      ...may('descriptor', () => 'Purchase: Socks'),
      ...may('paymentType', () => pick(PAYMENT_TYPE)),
      ...may('paymentMethodToken', () => 'heNwnqaeRiqvY1UcslfQc3wxNjEzOTIxNjc4'),
      ...may('isVaulted', () => pick([true, false, 'true', 'false'])),
      ...may('analyticsId', () => 'VtkMDAx'),
      ...may('paymentMethodType', () => pick(METHOD)),
      ...may('authorizationType', () => pick(['ESTIMATED', 'FINAL'])),
      ...may('paymentMethodData', () => paymentMethodData(random, may)),
      ...may('threeDSecureAuthentication', () => ({
        responseCode: pick(THREE_DS),
        ...may('reasonCode', () => 'REJECTED_BY_ISSUER'),
        ...may('reasonText', () => 'The issuer rejected it.'),
        ...may('protocolVersion', () => '2.2.0'),
        ...may('challengeIssued', () => chance(0.5)),
      })),
    })),
    ...may('processor', () => ({
      ...may('name', () => 'STRIPE'),
      ...may('processorMerchantId', () => 'acct_1'),
      ...may('amountCaptured', () => pick([0, amount, Math.floor(amount / 2)])),
      ...may('amountRefunded', () => integer(0, amount)),
    })),
    ...(chance(0.2) && { requiredAction: { name: '3DS_AUTHENTICATION', description: 'Authenticate.' } }),
    ...may('statusReason', statusReason),
    ...may('transactions', () =>
      random.chance(0.1) ? [...refunds, ...sales, transaction('OTHER')] : [...sales, ...refunds],
    ),
    ...may('riskData', () => ({ cvvCheck: { source: 'PROCESSOR', result: 'MATCHED' } })),
  }
}

function paymentMethodData({ pick, chance, integer }: Random, may: (name: string, value: () => unknown) => Json): Json {
  // PayPal, Klarna, GoCardless: an object of another kind.
  if (chance(0.2)) return { paypalOrderId: '7B', externalPayerInfo: { email: 'ada@example.com' } }
  return {
    last4Digits: pick(['1111', '12', 'abcd']),
    expirationMonth: pick(['03', '3']),
    expirationYear: '2030',
    ...may('first6Digits', () => pick(['411111', '4111'])),
    ...may('cardholderName', () => 'Ada'),
    ...may('network', () => pick(['Visa', 'Mastercard', 'NEW'])),
    ...may('isNetworkTokenized', () => chance(0.5)),
    ...may('binData', () => ({
      network: 'VISA',
      ...may('issuerCountryCode', () => pick(['US', 'AW'])),
      ...may('issuerName', () => 'x'.repeat(integer(0, 2_000))),
      ...may('issuerCurrencyCode', () => 'USD'),
      regionalRestriction: pick(['DOMESTIC_USE_ONLY', 'NONE', 'UNKNOWN']),
      accountNumberType: pick(['PRIMARY_ACCOUNT_NUMBER', 'NETWORK_TOKEN', 'DIGITAL_PAN', 'UNKNOWN']),
      accountFundingType: pick(['CREDIT', 'DEBIT', 'PREPAID', 'CHARGE', 'DEFERRED_DEBIT', 'UNKNOWN']),
      prepaidReloadableIndicator: pick(['RELOADABLE', 'NON_RELOADABLE', 'NOT_APPLICABLE', 'UNKNOWN']),
      productUsageType: pick(['CONSUMER', 'BUSINESS', 'GOVERNMENT', 'UNKNOWN']),
      productCode: 'VISA',
      productName: 'VISA',
    })),
  }
}
