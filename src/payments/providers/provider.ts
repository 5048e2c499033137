// The contract of payment providers: what an adapter must implement.

import type { Fee } from './fees.ts'
import type { Dispute, Movement, RefundAtProvider } from './movements.ts'
import type { Notification } from './notification.ts'
import type {
  AccountDescription,
  Authorized,
  Conflict,
  NotBegun,
  NotFound,
  Pending,
  Prepared,
  Refused,
  SavedCard,
  Settled,
  Sum,
  Unconfirmed,
  Unknown,
  Withheld,
} from './outcomes.ts'

export { noDetails, type PaymentDetails } from '../../core/records/payment.ts'
export type { Dispute, Movement, RefundAtProvider } from './movements.ts'

/** The differences between providers. An adapter only declares them; `billing/` implements the rules that follow. */
export interface Traits {
  /** Whether a charge takes two calls, `prepare` and `confirm`, with the handle stored in between; else it is one, `charge`. */
  prepares: boolean
  /**
   * How a lost outcome is found. With `handle` and `reference` by a look-up. With `replay` only by sending the same call
   * with the same key again while the provider remembers the key; `lookUp` and `lookUpRefund` are then never called.
   */
  lookUp: 'handle' | 'reference' | 'replay'
  /** How long the provider remembers a key; `Infinity`: always. `unknown`: no call is repeated, a late first one is looked up first. */
  keyLifeMs: number | 'unknown'
  /** How long after a call its movement may be missing in look-ups, beyond the deadline; none if omitted. */
  lookUpLagMs?: number
  /** How an unknown charge is ended. `wait_out`: it was not made if two look-ups, well past the deadline, found nothing. */
  refuse: 'cancel' | 'cancel_by_key' | 'wait_out'
  refunds: 'synchronous' | 'may_fail_later'
  /** How a refund with an unknown outcome is ended. */
  refuseRefund: 'cancel_by_key' | 'wait_out'
}

/** Identifies one charge or refund at a provider. Callers may pass a complete request. */
export interface Reference {
  /** The idempotency key at the provider, which moves money at most once for it while it remembers the key. */
  key: string
  /** Our own id of the order or refund, visible at the provider. */
  reference: string
  merchantId: string
  region: string | null
  /**
   * The provider's id of the prepared payment, or of the refund; as `psp_transaction_id` it names the charge too. If it is null, none was
   * stored: then no confirmation of the payment was ever sent, and the refund is found by the key alone.
   */
  handle: string | null
}

export interface Card {
  /** The provider's id of the saved card. */
  token: string
  /** The provider's customer that the card is attached to; null if it is unknown or the provider has no customers. */
  providerCustomer: string | null
}

/** The adapter converts the amount exactly into the provider's units, or refuses it in `accepts`. */
export interface ChargeRequest extends Reference, Card, Sum {
  traceparent?: string
}

/** A span of time between two instants (RFC 3339), or without an end. */
export interface Span {
  since: string
  until?: string
}

export interface RefundRequest extends Reference, Sum {
  /** The provider's id of the charge to pay back: `details.psp_transaction_id` of the successful charge. */
  chargeTransactionId: string
  traceparent?: string
}

/** Identifies a refund at a provider, and the charge that it pays back. */
export interface RefundReference extends Reference {
  chargeTransactionId: string
}

/** The merchant id of a provider that serves every merchant account of its psp. */
export const EVERY_MERCHANT = '*'

/**
 * A payment provider, accessed with the credentials of one merchant account. Each call has one deadline. A failure of the
 * network or of the provider is the outcome `unknown`; only methods that return an `AsyncIterable` throw, and what they
 * throw is a `ProviderError`. Any other exception is a bug.
 */
export interface Provider {
  /** The `psp` of its merchant accounts. */
  readonly name: string
  /** The merchant account; `*` for the simulator, which serves every merchant id. */
  readonly merchantId: string
  /** Whether the account moves only test money. */
  readonly isSandbox: boolean
  /** The provider’s own id of the account that it was first connected to, if that is known. */
  readonly accountId?: string | null
  readonly traits: Traits

  /**
   * A sentence that says why this provider can never make a charge of this amount and currency, for a 400; undefined if it
   * can. Makes no call.
   */
  accepts(request: Sum): string | undefined

  /** The same for a refund. Absent if the provider can pay back every amount that it can charge. */
  acceptsRefund?(request: Sum): string | undefined

  /** Whether a new charge may begin: false while the circuit is open or too many calls are queued. */
  admits(): boolean
  /** For metrics and the doctor. Unlike `admits` it does not use up the trial of an open circuit. */
  circuitIsOpen(): boolean
  isReachable(): Promise<boolean>
  /** Waits for the turn of a reading that is made without this adapter, so that it shares the rate of the account. */
  takeTurn?(signal: AbortSignal): Promise<void>
  /** What the provider reports of the account. Absent for a provider without credentials. */
  describeAccount?(signal?: AbortSignal): Promise<AccountDescription | NotBegun | Unknown>

  /**
   * Creates the payment without confirming it, so that no money moves. Repeating it with the same key is always harmless.
   * `failed` if the provider has rejected it for good. Present if `traits.prepares`.
   */
  prepare?(
    request: ChargeRequest,
    signal?: AbortSignal,
  ): Promise<Prepared | Settled | NotBegun | Unknown | Refused | Conflict>
  /** Charges a prepared payment, at most once for each handle. Present if `traits.prepares`. */
  confirm?(
    request: Reference & { handle: string; traceparent?: string },
    signal?: AbortSignal,
  ): Promise<Settled | Pending | Unknown | Refused>
  /** Charges at most once for each key; for a known key it returns the first outcome. Present unless `traits.prepares`. */
  charge?(
    request: ChargeRequest,
    signal?: AbortSignal,
  ): Promise<Settled | Authorized | Pending | NotBegun | Unknown | Refused | Conflict | Withheld>
  lookUp(
    reference: Reference,
    signal?: AbortSignal,
  ): Promise<Settled | Authorized | Pending | Unknown | Refused | NotFound | Unconfirmed>
  /** Captures an authorized payment, at most once. Present if `charge` or `lookUp` may return `authorized`. */
  capture?(
    request: Reference & { handle: string },
    signal?: AbortSignal,
  ): Promise<Settled | Authorized | Pending | Unknown | Refused>
  /** Makes the provider refuse the charge for good, even if its request is still in transit. Returns the outcome if it has one. */
  refuse(reference: Reference, signal?: AbortSignal): Promise<Settled | Pending | Unknown | Refused>
  /**
   * Finds the payment made under our key within a span of time, for orders whose handle was lost. It must use a list that is
   * always current, not a search index. It searches the payments of the customers that these cards are attached to; of the whole
   * account if none of them is attached to a customer, so the span must be short.
   */
  findByKey?(
    request: Reference & { cards: readonly Card[] },
    span: Span,
    signal?: AbortSignal,
  ): Promise<Prepared | Settled | Pending | NotFound | Unknown>

  refund(
    request: RefundRequest,
    signal?: AbortSignal,
  ): Promise<Settled | Pending | NotBegun | Unknown | Refused | Conflict | Withheld>
  lookUpRefund(
    reference: RefundReference,
    signal?: AbortSignal,
  ): Promise<Settled | Pending | Unknown | Refused | NotFound>
  /** Makes the provider refuse the refund for good. Absent if `traits.refuseRefund` is `wait_out`. */
  refuseRefund?(reference: RefundReference, signal?: AbortSignal): Promise<Settled | Pending | Unknown | Refused>

  /** All refunds of one charge at the provider, including those that Tundish did not make. */
  refundsOf(charge: { chargeTransactionId: string }, signal?: AbortSignal): Promise<RefundAtProvider[] | Unknown>
  /** All disputes of one charge. Absent if the provider has no disputes. */
  disputesOf?(charge: { chargeTransactionId: string }, signal?: AbortSignal): Promise<Dispute[] | Unknown>
  /** Looks up a saved card; undefined if it does not exist. Its customer is null if the card was detached. */
  savedCard?(token: string, signal?: AbortSignal): Promise<SavedCard | Unknown | undefined>
  /** Our id of the order of a payment, null if it has none. Present if charges in progress have no handle here by which to find them. */
  referenceOf?(transactionId: string, signal?: AbortSignal): Promise<{ reference: string | null } | Unknown>
  /** The customer of a charge or payment, null if it has none; undefined if it does not exist or belongs to others. */
  payerOf?(transactionId: string, signal?: AbortSignal): Promise<{ customer: string | null } | Unknown | undefined>
  /** Erases the data of a customer there, then detaches its cards, `card` last, which named it. Repeating changes nothing. */
  eraseCustomer?(
    customer: string,
    how: 'empty' | 'delete',
    signal?: AbortSignal,
    card?: string,
  ): Promise<{ outcome: 'erased' } | Unknown>
  /** Deletes a saved card that belongs to no known customer. Absent if a card without a customer cannot be charged there. */
  eraseCard?(token: string, signal?: AbortSignal): Promise<{ outcome: 'erased' } | Unknown>
  /** The fee of an entry in the balance, undefined if it belongs to no payment; `not_begun` without the permission to read it. */
  feeOf?(entryId: string, signal?: AbortSignal): Promise<Fee | NotBegun | Unknown | undefined>
  /**
   * Pages of the account's fees since an instant (RFC 3339). Throws `NotPermitted` if the credentials lack the permission to
   * read them.
   */
  feesSince?(since: string): AsyncIterable<Fee[]>
  /** Pages of the notifications created since `sinceS` (seconds since 1970), newest first. */
  notificationsSince?(sinceS: number, signal?: AbortSignal): AsyncIterable<Notification[]>

  /**
   * Every dispute that was opened since an instant (RFC 3339), or opened earlier and perhaps decided since. Absent if the provider has no
   * disputes. May throw `NotPermitted`.
   */
  listDisputes?(since: string): AsyncIterable<Dispute>
  /**
   * Every movement of money since an instant (RFC 3339), oldest first, with those that the provider decides later and declined
   * charges. Throws if the list is cut off; may throw `NotPermitted`.
   */
  list(since: string): AsyncIterable<Movement>

  close(): void
}

/** The providers that this process can use, one for each connected merchant account. */
export interface Providers {
  /** The provider of a merchant account, opened if necessary; undefined if the account is not connected. */
  of(organizationId: string, psp: string, merchantId: string | null): Promise<Provider | undefined>
  /** The providers that are open already, of all organizations or of one. Accounts that were not used yet are missing. */
  opened(organizationId?: string): Iterable<Provider>
  /** Every connected merchant account with its organization, which is null for a provider that serves all of them. */
  all(): Promise<{ organizationId: string | null; provider: Provider }[]>
}

/** A failure of the provider or of the network to it. The message contains no address and no secret. */
export class ProviderError extends Error {}

/** The credentials lack a permission, so that repeating the call does not help. */
export class NotPermitted extends ProviderError {
  /** By the provider's name of it. */
  readonly permission: string

  constructor(permission: string) {
    super(`the key lacks the permission "${permission}"`)
    this.permission = permission
  }
}

/** The error of a look-up without an outcome. */
export function errorOf({ why, missingPermission }: Unknown): ProviderError {
  return missingPermission === undefined ? new ProviderError(why) : new NotPermitted(missingPermission)
}
