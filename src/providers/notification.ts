// Notifications of payment providers: hints what to look up, never an outcome.
import type { Entered } from './fees.ts'

/** The object to look up at the provider, so that order, repetition and loss of notifications do not matter. */
export type Hint =
  | { about: 'charge' /** Our id of the order; null: not made by us. */; orderId: string | null }
  /** The provider's id of the charge. */
  | { about: 'refund' | 'dispute'; chargeTransactionId: string }
  /** A saved card changed or was removed. */
  | { about: 'card'; token: string }
  /** Not relevant for charges and refunds. */
  | { about: 'nothing' }

export interface Notification {
  /** The provider's id of the notification: copies have the same. */
  id: string
  kind: string
  /** When the provider made it, in seconds since 1970. */
  createdS: number
  hint: Hint
  /** The entries in the account's balance that it names, whose fees can be looked up. */
  entered?: Entered | undefined
  /** The whole notification, for imports that follow changes. */
  event: Record<string, unknown>
}
