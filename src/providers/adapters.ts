// The adapters of payment providers by their psp: how an account is opened, and whose secret key a text is.
import type { Account } from './account.ts'
import type { GuardOptions } from './guard.ts'
import type { Notification } from './notification.ts'
import type { NotBegun, Provider, Unknown } from './provider.ts'
import { isSignedByStripe, readStripeEvent } from './stripe/notifications.ts'
import { type AccountDescription, StripeProvider } from './stripe/stripe.ts'

export interface AdapterOptions extends GuardOptions {
  /** Another address of Stripe's API, for tests. */
  stripeApiUrl?: string | undefined
  /** Where the demo's simulator with Stripe's API is now; only keys that Stripe never issues are sent there. */
  stripeSimulatorUrl?: (() => string) | undefined
}

export interface Adapter {
  /** Its name in sentences. */
  title: string
  /** Opens one account. Each has a guard of its own: deadline, circuit, places and rate. */
  open(
    account: Pick<Account, 'secretKey' | 'merchantId' | 'isSandbox' | 'currencies'>,
    options: AdapterOptions,
  ): Provider
  /** The mode that a secret key is for, by its form; undefined: this is no secret key of the provider. */
  modeOf(secretKey: string): 'live' | 'sandbox' | undefined
  /** Whether a text has the form of a secret that signs the provider's notifications. */
  isWebhookSecret(text: string): boolean
  /** The header with the signature of its notifications. */
  signatureHeader: string
  isSigned(header: string, body: Buffer, secrets: readonly string[], nowS: number): boolean
  /** Reads the body of a notification; undefined: it is none. */
  readNotification(body: unknown): Notification | undefined
  /** Asks the provider whose key it is. */
  describe(secretKey: string, options: AdapterOptions): Promise<AccountDescription | NotBegun | Unknown>
}

/** How secret keys of the demo's simulator begin: they never go to Stripe's own address, nor Stripe's keys to it. */
export const STRIPE_SIMULATOR_KEY = 'sk_test_tundish'
// A port that no program listens on.
const NOWHERE = 'http://127.0.0.1:9'

// Stripe answers 429 from about 100 calls a second in live mode and 25 in test mode.
const STRIPE_CALLS_PER_SECOND = { live: 80, sandbox: 20 }

const stripe: Adapter = {
  title: 'Stripe',
  open: (account, options) => openStripe(account, options),
  modeOf: (secretKey) => {
    const mode = /^(?:sk|rk)_(test|live)_[A-Za-z0-9_]{8,247}$/.exec(secretKey)?.[1]
    return mode === undefined ? undefined : mode === 'test' ? 'sandbox' : 'live'
  },
  isWebhookSecret: (text) => /^whsec_[A-Za-z0-9_+/=]{8,247}$/.test(text),
  signatureHeader: 'stripe-signature',
  isSigned: isSignedByStripe,
  readNotification: readStripeEvent,
  async describe(secretKey, options) {
    const provider = openStripe({ secretKey, merchantId: '', isSandbox: true, currencies: [] }, options)
    return provider.describeAccount().finally(() => provider.close())
  },
}

function openStripe(
  account: Parameters<Adapter['open']>[0],
  { stripeApiUrl, stripeSimulatorUrl, ...guard }: AdapterOptions,
) {
  const isPlayMoney = account.secretKey.startsWith(STRIPE_SIMULATOR_KEY)
  const apiUrl = isPlayMoney ? (stripeSimulatorUrl ?? stripeApiUrl ?? NOWHERE) : stripeApiUrl
  const maxPerSecond = STRIPE_CALLS_PER_SECOND[account.isSandbox ? 'sandbox' : 'live']
  return new StripeProvider({
    ...guard,
    ...account,
    maxPerSecond,
    ...(apiUrl !== undefined && { apiUrl }),
  })
}

export const adapters: Readonly<Partial<Record<string, Adapter>>> = { stripe }
