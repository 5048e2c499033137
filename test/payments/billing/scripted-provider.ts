// A payment provider whose response to each call is set by the test, and a fixed list of providers for all organizations.
import type { Settled } from '../../../src/payments/providers/outcomes.ts'
import { noDetails, type Provider, type Providers, type Traits } from '../../../src/payments/providers/provider.ts'

export const unknown = { outcome: 'unknown', why: 'set by the test' } as const

/** The simulator's. */
export const oneStep: Traits = {
  prepares: false,
  lookUp: 'reference',
  keyLifeMs: Number.POSITIVE_INFINITY,
  refuse: 'cancel_by_key',
  refunds: 'synchronous',
  refuseRefund: 'cancel_by_key',
}

export function scriptedProvider(script: Partial<Provider>): Provider {
  const alwaysUnknown = async () => unknown
  return {
    name: 'simulator',
    merchantId: '*',
    isSandbox: true,
    traits: oneStep,
    accepts: () => undefined,
    admits: () => true,
    circuitIsOpen: () => false,
    isReachable: async () => true,
    charge: alwaysUnknown,
    lookUp: alwaysUnknown,
    refuse: alwaysUnknown,
    refund: alwaysUnknown,
    lookUpRefund: alwaysUnknown,
    refuseRefund: alwaysUnknown,
    refundsOf: async () => [],
    async *list() {},
    close() {},
    ...script,
  }
}

/** The verdict on a movement of 10.50 USD. */
export function verdict(outcome: 'succeeded' | 'failed', more: Partial<Settled> = {}): Settled {
  const details = { ...noDetails, psp_transaction_id: 'there-1', ...more.details }
  return { outcome, reference: 'there', amountMinor: 1050n, currencyCode: 'USD', ...more, details }
}

/** Charges the requested amount, with our reference. */
export const honest: Partial<Provider> = {
  charge: async ({ reference, amountMinor, currencyCode }) =>
    verdict('succeeded', { reference, amountMinor, currencyCode }),
}

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
