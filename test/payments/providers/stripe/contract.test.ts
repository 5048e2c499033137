// The Stripe adapter keeps the provider contract, against the simulator with Stripe's API.
import { StripeProvider } from '../../../../src/payments/providers/stripe/stripe.ts'
import { openStripeSimulator, TEST_KEY } from '../../../support/simulators.ts'
import { providerContract } from '../provider-contract.ts'

providerContract(
  'Stripe',
  async () => {
    const { url, ...simulator } = await openStripeSimulator()
    const account = { secretKey: TEST_KEY, apiUrl: url, merchantId: 'acct_1', isSandbox: true }
    return {
      ...simulator,
      provider: (limits) => new StripeProvider({ ...account, ...limits }),
      forgetKeys: () => simulator.control('/clock', { advance_ms: 25 * 3_600_000 }),
    }
  },
  {
    good: 'pm_card_visa',
    isFoundByKey: true,
    mostMinor: 99_999_999n,
    declined: {
      pm_card_chargeDeclined: 'generic_decline',
      pm_card_chargeDeclinedInsufficientFunds: 'insufficient_funds',
      pm_card_chargeDeclinedExpiredCard: 'expired_card',
      pm_card_chargeDeclinedProcessingError: 'processing_error',
      pm_card_chargeDeclinedLostCard: 'lost_card',
      pm_card_authenticationRequired: 'authentication_required',
    },
    faults: {
      chargeThenDrop: 'pm_sim_confirm_drop_after',
      dropNoCharge: 'pm_sim_confirm_drop_before_once',
      late: 'pm_sim_confirm_late_300ms',
      slow: 'pm_sim_confirm_slow_3000ms',
      refundThenDrop: 'pm_sim_refund_drop_after',
      refundDropped: 'pm_sim_refund_drop_before',
    },
  },
)
