// A saved card, as its provider describes it now.

export interface SavedCard {
  /** The provider's customer that it is attached to; null if it was detached or never saved. */
  customer: string | null
  last4: string | null
  network: string | null
  /** `12/2034`. */
  expirationDate: string | null
}
