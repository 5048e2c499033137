// npm run test:deep sandbox: the contract of providers against Stripe's own test mode, with the key in STRIPE_SANDBOX_KEY.
import { StripeProvider } from '../../../../src/payments/providers/stripe/stripe.ts'
import { providerContract } from '../provider-contract.ts'

const secretKey = process.env['STRIPE_SANDBOX_KEY'] ?? ''

if (/^[sr]k_test_\w+$/.test(secretKey)) {
  // The test mode takes 25 calls a second.
  const account = { secretKey, merchantId: 'sandbox', isSandbox: true, maxPerSecond: 15 }
  providerContract(
    "Stripe's test mode",
    async () => ({
      provider: (limits) => new StripeProvider({ ...account, ...limits }),
      async stop() {},
      async start() {},
      async cleanUp() {},
    }),
    {
      good: 'pm_card_visa',
      mostMinor: 99_999_999n,
      declined: {
        pm_card_visa_chargeDeclined: 'generic_decline',
        pm_card_visa_chargeDeclinedInsufficientFunds: 'insufficient_funds',
        pm_card_chargeDeclinedExpiredCard: 'expired_card',
        pm_card_chargeDeclinedProcessingError: 'processing_error',
        pm_card_visa_chargeDeclinedLostCard: 'lost_card',
        pm_card_authenticationRequired: 'authentication_required',
      },
    },
  )
} else {
  process.stderr.write(
    "Set STRIPE_SANDBOX_KEY to a secret key of Stripe's test mode (sk_test_…); a live key is refused.\n",
  )
  process.exitCode = 2
}
