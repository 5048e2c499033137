// The contract of payment providers: what an adapter must implement, and the outcomes it may return.

import type { Fee } from './fees.ts'
import type { Dispute, Movement, RefundAtProvider } from './movements.ts'
import type { Notification } from './notification.ts'
import type { PaymentDetails } from './payment-details.ts'

export type { Dispute, Movement, RefundAtProvider } from './movements.ts'
export { noDetails, type PaymentDetails } from './payment-details.ts'

/**
 * How a provider differs from others. An adapter declares its traits; the rules that follow from them are kept by the
 * core in `billing/`, never by an adapter.
 */
export interface Traits {
  /** True: prepare, store the handle, confirm. False: one call, `charge`, moves the money. */
  prepares: boolean
  /**
   * How an outcome is found again. `replay`: only by sending the same call with the same key while the key lives; `lookUp`
   * and `lookUpRefund` are then never called.
   */
  lookUp: 'handle' | 'reference' | 'replay'
  /** How long the provider remembers an idempotency key; `Infinity`: for ever. */
  keyLifeMs: number
  /** `wait_out`: a charge cannot be cancelled; it is over after two negative look-ups, well past the deadline. */
  refuse: 'cancel' | 'cancel_by_key' | 'wait_out'
  refunds: 'synchronous' | 'may_fail_later'
  /** How a refund with an unknown outcome is ended. */
  refuseRefund: 'cancel_by_key' | 'wait_out'
}

/** Names one charge or refund at a provider. Callers may pass a whole request. */
export interface Reference {
  /** The provider's idempotency key: it moves money at most once for each key while the key lives. */
  key: string
  /** Our own id of the order or refund, visible at the provider. */
  reference: string
  merchantId: string
  region: string | null
  /** The provider's id of the prepared payment. Null: none was stored, so no confirmation was ever sent. */
  handle: string | null
}

export interface ChargeRequest extends Reference {
  /** Minor units of ISO 4217, always: an adapter converts to the provider's own units, exactly, or refuses in `accepts`. */
  amountMinor: bigint
  currencyCode: string
  /** The saved card, as this provider calls it. */
  token: string
  /** The provider's customer that the card is attached to; null: unknown, or the provider has none. */
  providerCustomer: string | null
  traceparent?: string
}

export interface RefundRequest extends Reference {
  amountMinor: bigint
  currencyCode: string
  /** The charge to pay back, as the provider calls it: `details.psp_transaction_id` of its success. */
  chargeTransactionId: string
  traceparent?: string
}

/** Names a refund at a provider, with the charge that it pays back. */
export interface RefundReference extends Reference {
  chargeTransactionId: string
}

/** The provider has decided. The reference, amount and currency are those that it holds under the key. */
export interface Settled {
  outcome: 'succeeded' | 'failed'
  reference: string
  amountMinor: bigint
  currencyCode: string
  details: PaymentDetails
  /** What the charge asked for, where only a part of it was approved and the provider tells. */
  askedMinor?: bigint
  /** The customer that the card is attached to, where the provider told. */
  providerCustomer?: string
}

/** The payment exists at the provider, unconfirmed: no money has moved. Also when it was prepared before. */
export interface Prepared {
  outcome: 'prepared'
  handle: string
  providerCustomer?: string
}

/** A look-up found the payment prepared and never confirmed: no money has moved, and it still can be confirmed. */
export interface Unconfirmed {
  outcome: 'unconfirmed'
}

/** The provider decides later, perhaps in days. `why` is for operators and holds no secret. */
export interface Pending {
  outcome: 'pending'
  why: string
}

/** Money may have moved or not: only a later look-up can tell. `why` is for operators and holds no secret. */
export interface Unknown {
  outcome: 'unknown'
  why: string
}

/** Nothing exists at the provider under this key, for certain: the call was turned away before it was looked at. */
export interface NotBegun {
  outcome: 'not_begun'
  why: string
  /** `credentials`: ours are wrong (401, 403). `busy`: too many calls (429). `unreachable`: no connection was made. */
  cause: 'credentials' | 'busy' | 'unreachable'
}

/** No money moved under this key, and none ever will. */
export interface Refused {
  outcome: 'refused'
}

/** The provider does not know the key now. A request that is still on its way may change that. */
export interface NotFound {
  outcome: 'not_found'
}

/** The key already belongs to another amount, currency, card or charge: this request moved no money. */
export interface Conflict {
  outcome: 'conflict'
}

/** The merchant id of a provider that serves every merchant account of its psp. */
export const EVERY_MERCHANT = '*'

/**
 * A payment provider as one merchant account sees it. No method throws for trouble on the way or at the provider, that is
 * `unknown`; only `list` does, with `ProviderTrouble`. Every other exception is a bug. Each call has one deadline.
 */
export interface Provider {
  /** The `psp` of its merchant accounts. */
  readonly name: string
  /** The merchant account; `*` for the simulator, which serves every merchant id. */
  readonly merchantId: string
  /** Whether it moves play money only. */
  readonly isSandbox: boolean
  readonly traits: Traits

  /**
   * Why this charge can never be made here, as a sentence for a 400, or undefined. Pure: it judges the amount, the
   * provider's minor units and the currency, and asks no one.
   */
  accepts(request: { amountMinor: bigint; currencyCode: string }): string | undefined

  /** Asked before a charge is claimed: false while the circuit is open or too many calls wait already. */
  admits(): boolean
  /** For metrics and `doctor`; asking changes nothing. */
  circuitIsOpen(): boolean
  isReachable(): Promise<boolean>

  /**
   * Creates the payment unconfirmed; no money can move. Repeating it with the same key is harmless at any age. `failed`:
   * the provider rejected it for good. Present where `traits.prepares`.
   */
  prepare?(
    request: ChargeRequest,
    signal?: AbortSignal,
  ): Promise<Prepared | Settled | NotBegun | Unknown | Refused | Conflict>
  /** Charges a prepared payment, at most once for its handle. Present where `traits.prepares`. */
  confirm?(
    request: Reference & { handle: string; traceparent?: string },
    signal?: AbortSignal,
  ): Promise<Settled | Pending | Unknown | Refused>
  /** Moves money at most once for each key; a known key returns its outcome. Present unless `traits.prepares`. */
  charge?(
    request: ChargeRequest,
    signal?: AbortSignal,
  ): Promise<Settled | Pending | NotBegun | Unknown | Refused | Conflict>
  lookUp(
    reference: Reference,
    signal?: AbortSignal,
  ): Promise<Settled | Pending | Unknown | Refused | NotFound | Unconfirmed>
  /** Has the provider refuse the charge for good, also a request still on its way; or returns what it already became. */
  refuse(reference: Reference, signal?: AbortSignal): Promise<Settled | Pending | Unknown | Refused>
  /**
   * The payment made under our key since an instant (RFC 3339), found by a list that is not behind (never by a search):
   * for orders that a restored backup does not have.
   */
  findByKey?(
    request: Reference & { token: string; providerCustomer: string | null },
    since: string,
    signal?: AbortSignal,
  ): Promise<Prepared | Settled | Pending | NotFound | Unknown>

  refund(
    request: RefundRequest,
    signal?: AbortSignal,
  ): Promise<Settled | Pending | NotBegun | Unknown | Refused | Conflict>
  lookUpRefund(
    reference: RefundReference,
    signal?: AbortSignal,
  ): Promise<Settled | Pending | Unknown | Refused | NotFound>
  /** Absent where `traits.refuseRefund` is `wait_out`. */
  refuseRefund?(reference: RefundReference, signal?: AbortSignal): Promise<Settled | Pending | Unknown | Refused>

  /** All refunds that the provider has of one charge, also those that were not made by us. */
  refundsOf(charge: { chargeTransactionId: string }, signal?: AbortSignal): Promise<RefundAtProvider[] | Unknown>
  /** All disputes of one charge. Absent where the provider has none. */
  disputesOf?(charge: { chargeTransactionId: string }, signal?: AbortSignal): Promise<Dispute[] | Unknown>

  /** What the provider has of a saved card; undefined: nothing. Its customer is null when it was detached. */
  savedCard?(token: string, signal?: AbortSignal): Promise<{ customer: string | null } | Unknown | undefined>
  /** Erases what the provider has of a customer of its own, and detaches its cards. Repeating it changes nothing. */
  eraseCustomer?(
    customer: string,
    how: 'empty' | 'delete',
    signal?: AbortSignal,
  ): Promise<{ outcome: 'erased' } | Unknown>
  /**
   * The fee of an entry in the account's balance; undefined: it is of no payment. `not_begun`: the credentials do not
   * allow to read it. Absent where the provider does not tell fees.
   */
  feeOf?(entryId: string, signal?: AbortSignal): Promise<Fee | NotBegun | Unknown | undefined>
  /**
   * Pages of the fees of the account since an instant (RFC 3339); `not_begun` ends them, as for `feeOf`. Throws
   * `ProviderTrouble`.
   */
  feesSince?(since: string): AsyncIterable<Fee[] | NotBegun>
  /** Pages of the notifications made since a second of 1970, newest first. Throws `ProviderTrouble`. */
  notificationsSince?(sinceS: number, signal?: AbortSignal): AsyncIterable<Notification[]>

  /** Every dispute opened since an instant (RFC 3339). Throws `ProviderTrouble`. Absent where the provider has none. */
  listDisputes?(since: string): AsyncIterable<Dispute>
  /** Every movement of money since an instant (RFC 3339), oldest first. Throws `ProviderTrouble` when it breaks off. */
  list(since: string): AsyncIterable<Movement>

  close(): void
}

/** The providers of this process: one for each merchant account that is set up here. */
export interface Providers {
  /** The provider of a merchant account; undefined: none is set up here. May read credentials from the database. */
  of(organizationId: string, psp: string, merchantId: string | null): Promise<Provider | undefined>
  /** Those that are open already, of all organizations or usable by this one. Asks nobody, so some may be missing. */
  opened(organizationId?: string): Iterable<Provider>
  /** Every merchant account that is set up, with its organization; null: it serves all of them. */
  all(): Promise<{ organizationId: string | null; provider: Provider }[]>
}

/** Trouble on the way to a provider or at it. The message names no address and no secret. */
export class ProviderTrouble extends Error {}
