// The Primer adapter keeps the provider contract, against the simulator with Primer's API.
import { PrimerProvider } from '../../../../src/payments/providers/primer/primer.ts'
import { openPrimerSimulator, PRIMER_KEY } from '../../../support/simulators.ts'
import { providerContract } from '../provider-contract.ts'

providerContract(
  'Primer',
  async () => {
    const { url, ...simulator } = await openPrimerSimulator()
    const account = { apiKey: PRIMER_KEY, apiUrl: url, merchantId: 'primer-1', isSandbox: true }
    return { ...simulator, provider: (limits) => new PrimerProvider({ ...account, ...limits }) }
  },
  {
    good: 'tok_visa',
    mostMinor: 999_999_999_999n,
    declined: {
      tok_declined: 'DECLINED',
      tok_insufficient_funds: 'INSUFFICIENT_FUNDS',
      tok_expired_card: 'EXPIRED_CARD',
      tok_lost_card: 'LOST_OR_STOLEN_CARD',
      tok_authentication: 'AUTHENTICATION_REQUIRED',
      tok_rejected: 'GATEWAY_REJECTED',
    },
    whenDown: 'not_begun',
    faults: {
      chargeThenDrop: 'tok_drop_after',
      dropNoCharge: 'tok_drop_before_once',
      late: 'tok_late_300ms',
      slow: 'tok_slow_3000ms',
      refundThenDrop: 'tok_refund_drop_after',
      refundDropped: 'tok_refund_drop_before',
    },
  },
)
