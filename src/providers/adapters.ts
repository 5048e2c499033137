// The adapters of payment providers by their psp: what opens one merchant account.
import type { Account } from './account.ts'
import type { GuardOptions } from './guard.ts'
import type { Provider } from './provider.ts'

export interface AdapterOptions extends GuardOptions {
  /** Another address of Stripe's API, for tests and the demo. */
  stripeApiUrl?: string
}

/** Opens a provider for one account. Each has a guard of its own: deadline, circuit, places and rate. */
export type OpenAdapter = (account: Omit<Account, 'version' | 'organizationId'>, options: AdapterOptions) => Provider

export const adapters: Readonly<Record<string, OpenAdapter>> = {}
