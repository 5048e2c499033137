// The outcomes that a provider's adapter returns. Only `Settled` is final; the others say what may still happen.
import type { PaymentDetails } from '../../core/records/payment.ts'

/** An amount in minor units of ISO 4217. */
export interface Sum {
  amountMinor: bigint
  currencyCode: string
}

/** The provider's final decision. Reference, amount and currency are those that the provider has stored for the key. */
export interface Settled extends Sum {
  outcome: 'succeeded' | 'failed'
  reference: string
  details: PaymentDetails
  /** The requested amount, if the provider reports that it approved only a part of it. */
  askedMinor?: bigint
  /** The customer that the card is attached to, if the provider returned it. */
  providerCustomer?: string
  /** The charged card, if the provider returned it: an adopted charge may have used another card than the customer's latest. */
  token?: string
  /** Whether the customer was present, if the provider returned it. */
  isCit?: boolean
  /** Whether an earlier attempt inside the same payment was made at another processor. */
  isFallback?: boolean
  /** The attempts inside the same payment before the one that decided it, oldest first: all of them failed. */
  failedAttempts?: readonly FailedAttempt[]
}

/** An attempt that a provider made inside one payment at one of its processors, and that moved no money. */
export interface FailedAttempt {
  details: PaymentDetails
  isFallback: boolean
}

/** The bank has reserved the money, and none has moved: it must be captured to move. */
export interface Authorized {
  outcome: 'authorized'
  /** The provider's id of the payment. */
  handle: string
}

/**
 * The provider has processed this key before, successfully or not, and does not return the result. The movement has to be looked
 * up; the call must never be repeated, and it has not failed.
 */
export interface Withheld {
  outcome: 'withheld'
  /** The provider's id of the payment, if it returned it. */
  handle?: string
}

/** The payment exists at the provider, prepared now or earlier, and is unconfirmed: no money has moved. */
export interface Prepared {
  outcome: 'prepared'
  handle: string
  providerCustomer?: string
}

/** A look-up found the payment prepared but not confirmed: no money has moved, and it can still be confirmed. */
export interface Unconfirmed {
  outcome: 'unconfirmed'
}

/** The provider will decide later, possibly in days. `why` is for operators and contains no secret. */
export interface Pending {
  outcome: 'pending'
  why: string
  /** The provider's id of the refund, by which it is found even if a user of the provider's dashboard removes our key. */
  transactionId?: string
}

/** Money may or may not have moved; only a later look-up can show it. `why` is for operators and contains no secret. */
export interface Unknown {
  outcome: 'unknown'
  why: string
  /** The permission that the credentials lack for the call. */
  missingPermission?: string
}

/** Certainly nothing exists at the provider under this key, because the call was rejected before it was processed. */
export interface NotBegun {
  outcome: 'not_begun'
  why: string
  /** `credentials`: our key is rejected (401, 403). `busy`: too many calls (429). `unreachable`: no connection was made. */
  cause: 'credentials' | 'busy' | 'unreachable'
}

/** No money moved under this key, and none ever will. */
export interface Refused {
  outcome: 'refused'
}

/** The provider does not know the key at this moment. A request that is still in transit may change that. */
export interface NotFound {
  outcome: 'not_found'
}

/** The key was used before for another amount, currency, card or charge. This request moved no money. */
export interface Conflict {
  outcome: 'conflict'
}

/** What a provider reports of the account that a secret key belongs to. */
export interface AccountDescription {
  outcome: 'described'
  /** Null if the provider does not say to which account a key belongs. */
  accountId: string | null
  displayName: string | null
  country: string | null
  /** Whether the key is of the test mode. */
  isSandbox: boolean
  chargesEnabled: boolean
  /** ISO 4217 codes in capitals: the currencies that the account can charge and whose amounts can be converted. */
  currencies: string[]
  /** The permissions that the key lacks, by the provider's names of them. */
  missingPermissions: string[]
}

/** A saved card, as its provider describes it now. */
export interface SavedCard {
  /** The provider's customer that it is attached to; null if it was detached or never saved. */
  customer: string | null
  last4: string | null
  network: string | null
  /** `12/2034`. */
  expirationDate: string | null
}

/** Part of a sentence: what a message of a `ProviderError` says that `subject` did, or that no connection was made. */
export const whatDid = (subject: string, message: string): string =>
  /^(no|the) /.test(message) ? message : `${subject} ${message}`
