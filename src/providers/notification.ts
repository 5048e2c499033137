// What a payment provider's notification may tell: only where to look, never an outcome.

/** Whatever it says is looked up at the provider, so that order, repetition and loss of notifications do not matter. */
export type Hint =
  | { about: 'charge' /** Our id of the order; null: not made by us. */; orderId: string | null }
  /** The charge as the provider calls it. */
  | { about: 'refund' | 'dispute'; chargeTransactionId: string }
  /** A saved card changed or is gone. */
  | { about: 'card'; token: string }
  /** Of no use to charges and refunds. */
  | { about: 'nothing' }

export interface Notification {
  /** The provider's id of it: copies have the same. */
  id: string
  kind: string
  /** When the provider made it, in seconds since 1970. */
  createdS: number
  hint: Hint
  /** The whole notification, for the import, which follows a provider's records. */
  event: Record<string, unknown>
}
