// A fixed list of providers for all organizations.
import type { Provider, Providers } from '../../src/payments/providers/provider.ts'

/** A provider whose merchant id is `*` serves every merchant account of its psp. */
export function fixedProviders(providers: readonly Provider[]): Providers {
  return {
    async of(_organizationId, psp, merchantId) {
      const ofPsp = providers.filter(({ name }) => name === psp)
      return ofPsp.find((one) => one.merchantId === merchantId) ?? ofPsp.find((one) => one.merchantId === '*')
    },
    opened: () => providers,
    all: async () => providers.map((provider) => ({ organizationId: null, provider })),
  }
}
