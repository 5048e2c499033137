// The payment method of a payment: the card, its BIN, and whether the customer was authenticated.
import type { Payment } from './state.ts'

export function methodOf(token: string, paymentType: unknown): Payment['paymentMethod'] {
  return {
    ...(typeof paymentType === 'string' && { paymentType }),
    paymentMethodToken: token,
    isVaulted: true,
    analyticsId: 'VtkMDAxZW5isH0HsbbNxZ3lo',
    paymentMethodType: 'PAYMENT_CARD',
    authorizationType: 'FINAL',
    paymentMethodData: cardOf(),
    threeDSecureAuthentication: isCustomerPresent(paymentType)
      ? { responseCode: 'AUTH_SUCCESS', protocolVersion: '2.2.0', challengeIssued: true }
      : { responseCode: 'NOT_PERFORMED' },
  }
}

const isCustomerPresent = (paymentType: unknown) => paymentType === 'FIRST_PAYMENT' || paymentType === 'ECOMMERCE'

export const cardOf = () => ({
  ...{ first6Digits: '411111', last4Digits: '1111', expirationMonth: '12', expirationYear: '2034' },
  ...{ cardholderName: 'Ada Example', network: 'Visa', isNetworkTokenized: false },
  binData: {
    ...{ network: 'VISA', issuerCountryCode: 'US', issuerName: 'EXAMPLE BANK', issuerCurrencyCode: 'USD' },
    ...{ regionalRestriction: 'NONE', accountNumberType: 'PRIMARY_ACCOUNT_NUMBER', accountFundingType: 'CREDIT' },
    ...{
      prepaidReloadableIndicator: 'NOT_APPLICABLE',
      productUsageType: 'CONSUMER',
      productCode: 'F',
      productName: 'VISA CLASSIC',
    },
  },
})
