// A Stripe account: the simulator with Stripe's API, the adapter for it, and the official client.
import { StripeProvider } from '../../../../src/payments/providers/stripe/stripe.ts'
import type { StripeSimulatorOptions } from '../../../../src/simulators/stripe/server.ts'
import { openStripeSimulator, TEST_KEY } from '../../../support/simulators.ts'
import { HandClock } from '../../../support/time.ts'
import { charging } from '../charging.ts'

export type StripeAccount = Awaited<ReturnType<typeof openStripeAccount>>

export async function openStripeAccount(options: Partial<StripeSimulatorOptions> = {}) {
  const { livemode = false } = options
  const simulator = await openStripeSimulator(options)
  const secretKey = livemode ? TEST_KEY.replace('test', 'live') : TEST_KEY
  const providers: StripeProvider[] = []
  const adapter = (more: Partial<ConstructorParameters<typeof StripeProvider>[0]> = {}) => {
    const account = { secretKey, apiUrl: simulator.url, merchantId: 'acct_1', isSandbox: !livemode }
    const provider = new StripeProvider({ ...account, clock: new HandClock(), ...more })
    providers.push(provider)
    return provider
  }
  return {
    ...simulator,
    stripe: simulator.client(secretKey),
    adapter,
    ...charging(adapter()),
    provider: providers[0]!,
    cleanUp: async () => {
      for (const provider of providers) provider.close()
      await simulator.cleanUp()
    },
  }
}
