// The Airwallex adapter keeps the provider contract, against a small server that speaks its API.
import { AirwallexProvider } from '../../../../src/payments/providers/airwallex/airwallex.ts'
import { providerContract } from '../provider-contract.ts'
import { openAirwallex } from './dialect.ts'

providerContract(
  'Airwallex',
  async () => {
    const { url, ...server } = await openAirwallex()
    const account = { secretKey: 'client:key', apiUrl: url, merchantId: 'airwallex-1', isSandbox: true }
    return { ...server, provider: (limits) => new AirwallexProvider({ ...account, ...limits }) }
  },
  {
    good: 'cst_good',
    isFoundByKey: true,
    mostMinor: 999_999_999_999n,
    declined: {
      cst_insufficient_funds: 'insufficient_funds',
      cst_stolen: 'stolen',
      cst_authentication_required: 'authentication_required',
    },
    faults: {
      chargeThenDrop: 'cst_drop_after',
      dropNoCharge: 'cst_drop_before',
      late: 'cst_late',
      slow: 'cst_slow',
      refundThenDrop: 'cst_refund_drop_after',
      refundDropped: 'cst_refund_drop_before',
    },
  },
)
