// Notifications of payment providers. A notification is a hint about an object to look up, never an outcome.
import type { BalanceEntries } from './fees.ts'
import type { Dispute } from './movements.ts'

/**
 * The object to look up at the provider. Repeated and reordered notifications do no harm, because each look-up returns the
 * present state.
 */
export type Hint =
  | {
      about: 'charge'
      /** Our id of the order; null: not made by us, or its metadata was removed at the provider. */
      orderId: string | null
      /** The provider's id of the prepared payment. */
      handle: string | null
    }
  /** The provider's id of the charge. */
  | { about: 'refund'; chargeTransactionId: string }
  /**
   * `dispute`: as the signed notification reports it, for a provider that cannot be asked for disputes; `whyUnread` if that cannot be
   * recorded.
   */
  | { about: 'dispute'; chargeTransactionId: string; dispute?: Dispute; whyUnread?: string }
  /** A saved card changed or was removed; or its customer was removed, with all cards that the customer had saved. */
  | { about: 'card'; token: string }
  | { about: 'card'; customer: string }
  /** Neither charges, refunds, disputes nor saved cards are concerned. */
  | { about: 'nothing' }

/** A valid signature; `atS` is the time that it covers, in seconds since 1970, and null if it covers none. */
export interface Signed {
  atS: number | null
}

export interface Notification {
  /** The provider's id of the notification; repeated deliveries have the same id. */
  id: string
  kind: string
  /** When the provider created it, in seconds since 1970. */
  createdS: number
  hint: Hint
  /** The entries in the account's balance that it names; their fees can be looked up. */
  balanceEntries?: BalanceEntries | undefined
  /** The complete notification, for imports that follow the account. */
  event: Record<string, unknown>
}
