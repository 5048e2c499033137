// The adapters of payment providers, by `psp`: each opens accounts and recognizes the provider's keys and notifications.
import type { Account } from './account.ts'
import type { GuardOptions } from './guard.ts'
import type { Notification, Signed } from './notification.ts'
import type { AccountDescription, NotBegun, Unknown } from './outcomes.ts'
import {
  essenceOfPrimerEvent,
  readPrimerEvent,
  SIGNATURE_HEADERS,
  verifyPrimerSignature,
  whyNoPrimerEvent,
} from './primer/notifications.ts'
import { PrimerProvider } from './primer/primer.ts'
import type { Provider } from './provider.ts'
import {
  essenceOfStripeEvent,
  readStripeEvent,
  verifyStripeSignature,
  whyNoStripeEvent,
} from './stripe/notifications.ts'
import { StripeProvider } from './stripe/stripe.ts'

export interface AdapterOptions extends GuardOptions {
  /** Another base URL of Stripe's API, for tests. */
  stripeApiUrl?: string | undefined
  /** By psp: the addresses of the demo's simulators. Only keys that the provider never issues are sent there. */
  simulatorUrls?: SimulatorUrls | undefined
  /** By psp: other addresses of the other providers' APIs, for tests and the demo. */
  apiUrls?: ApiUrls | undefined
}

export type ApiUrls = Readonly<Partial<Record<string, string | (() => string)>>>

export type SimulatorUrls = Readonly<Partial<Record<string, () => string>>>

export interface Adapter {
  /** The provider's name in messages. */
  title: string
  /** Opens one account. Each account has its own guard: deadline, circuit breaker, concurrency limit and rate limit. */
  open(
    account: Pick<Account, 'secretKey' | 'merchantId' | 'isSandbox' | 'currencies' | 'accountId'>,
    options: AdapterOptions,
  ): Provider
  /** The mode of a secret key, by its form; undefined if the text is not a secret key of this provider. */
  modeOf(secretKey: string): 'live' | 'sandbox' | 'either' | undefined
  /** The forms of ids at this provider, as regular expressions of PostgreSQL. */
  ids: {
    /** Of payments that can be looked up, and not of refunds or attempts. */
    payment: string
    /** Of customers, which an import takes as ids of profiles. Omitted if the merchant chooses them, so that they have no form. */
    customer?: string
  }
  /** Whether a text has the form of a secret that signs the provider's notifications. */
  isWebhookSecret(text: string): boolean
  /** Whether the provider lists notifications that did not arrive, so that nothing is lost without them. */
  listsNotifications: boolean
  /** The headers that may carry the signature of a notification. */
  signatureHeaders: readonly string[]
  /**
   * Verifies the signature, and not how old it is; undefined if none is valid.
   * @param headers the values of those that the request has, at least one
   */
  verifySignature(headers: readonly string[], body: Buffer, secrets: readonly string[]): Signed | undefined
  /** Parses the body of a notification; undefined if it is not one. */
  readNotification(body: unknown): Notification | undefined
  /** The sentence for a signed body that is not a notification. */
  whyNotRead(body: unknown): string
  /** The parts of a notification that name objects, without personal data; `readNotification` reads them again. */
  essenceOf(notification: Notification): object
}

/** Requests from the provider the account that the key belongs to; `isSandbox` is the mode that it should be of. */
export async function describeKey(
  { open }: Adapter,
  secretKey: string,
  { isSandbox, ...options }: AdapterOptions & { isSandbox: boolean },
): Promise<AccountDescription | NotBegun | Unknown> {
  const provider = open({ secretKey, merchantId: '', isSandbox, currencies: [], accountId: null }, options)
  return provider.describeAccount!().finally(() => provider.close())
}

/** The prefix of secret keys of the demo's simulators. They are never sent to the provider, nor the provider's keys to a simulator. */
export const STRIPE_SIMULATOR_KEY = 'sk_test_tundish'
export const PRIMER_SIMULATOR_KEY = 'tundish-simulator-'
// No program listens on this port, so a demo key without a simulator fails to connect instead of reaching Stripe.
const NOWHERE = 'http://127.0.0.1:9'

// Stripe responds 429 above about 100 calls a second in live mode and 25 in test mode.
const STRIPE_CALLS_PER_SECOND = { live: 80, sandbox: 20 }

const stripe: Adapter = {
  title: 'Stripe',
  open: openStripe,
  modeOf: (secretKey) => {
    const mode = /^(?:sk|rk)_(test|live)_[A-Za-z0-9_]{8,247}$/.exec(secretKey)?.[1]
    return mode === undefined ? undefined : mode === 'test' ? 'sandbox' : 'live'
  },
  ids: { payment: '^(ch|py|pi)_', customer: '^cus_' },
  isWebhookSecret: (text) => /^whsec_[A-Za-z0-9_+/=]{8,247}$/.test(text),
  listsNotifications: true,
  signatureHeaders: ['stripe-signature'],
  verifySignature: ([header], ...given) => verifyStripeSignature(header!, ...given),
  readNotification: readStripeEvent,
  whyNotRead: whyNoStripeEvent,
  essenceOf: essenceOfStripeEvent,
}

/** Where Stripe's API is for this key; undefined: at Stripe. */
export function stripeApiFor(
  secretKey: string,
  { stripeApiUrl, simulatorUrls }: Pick<AdapterOptions, 'stripeApiUrl' | 'simulatorUrls'>,
): string | (() => string) | undefined {
  const isPlayMoney = secretKey.startsWith(STRIPE_SIMULATOR_KEY)
  return isPlayMoney ? (simulatorUrls?.['stripe'] ?? stripeApiUrl ?? NOWHERE) : stripeApiUrl
}

function openStripe(
  account: Parameters<Adapter['open']>[0],
  { stripeApiUrl, simulatorUrls, apiUrls: _others, ...guard }: AdapterOptions,
) {
  const apiUrl = stripeApiFor(account.secretKey, { stripeApiUrl, simulatorUrls })
  const maxPerSecond = STRIPE_CALLS_PER_SECOND[account.isSandbox ? 'sandbox' : 'live']
  return new StripeProvider({ ...guard, ...account, maxPerSecond, ...(apiUrl !== undefined && { apiUrl }) })
}

// Primer publishes no limit.
const PRIMER_CALLS_PER_SECOND = { live: 40, sandbox: 20 }

const primer: Adapter = {
  title: 'Primer',
  open: openPrimer,
  // Primer's keys have the same form in both modes: the host decides, which rejects keys of the other mode.
  modeOf: (secretKey) => (/^[A-Za-z0-9_-]{16,255}$/.test(secretKey) ? 'either' : undefined),
  // A refund is named PAYMENT/refund/N.
  ids: { payment: '^[A-Za-z0-9_-]+$' },
  isWebhookSecret: (text) => /^[\x21-\x7e]{8,255}$/.test(text),
  listsNotifications: false,
  signatureHeaders: SIGNATURE_HEADERS,
  verifySignature: verifyPrimerSignature,
  readNotification: readPrimerEvent,
  whyNotRead: whyNoPrimerEvent,
  essenceOf: essenceOfPrimerEvent,
}

function openPrimer(
  { secretKey, merchantId, isSandbox, currencies }: Parameters<Adapter['open']>[0],
  { stripeApiUrl: _url, simulatorUrls, apiUrls, ...guard }: AdapterOptions,
) {
  const isPlayMoney = secretKey.startsWith(PRIMER_SIMULATOR_KEY)
  const apiUrl = isPlayMoney ? (simulatorUrls?.['primer'] ?? apiUrls?.['primer'] ?? NOWHERE) : apiUrls?.['primer']
  const maxPerSecond = PRIMER_CALLS_PER_SECOND[isSandbox ? 'sandbox' : 'live']
  const account = { apiKey: secretKey, merchantId, isSandbox, currencies }
  return new PrimerProvider({ ...guard, ...account, maxPerSecond, ...(apiUrl !== undefined && { apiUrl }) })
}

/** By psp, which callers send: without a prototype, so that it has no other names, such as `constructor`. */
export const adapters: Readonly<Partial<Record<string, Adapter>>> = Object.assign(Object.create(null), {
  stripe,
  primer,
})
