// Movements of money as listed by a payment provider: charges, refunds and disputes.
import type { PaymentDetails } from './payment-details.ts'

/** A refund at the provider. `key` and `reference` are null if it was not made by Tundish. */
export interface RefundAtProvider {
  key: string | null
  reference: string | null
  /** The provider's id of the refund. */
  transactionId: string
  status: 'pending' | 'succeeded' | 'failed'
  amountMinor: bigint
  currencyCode: string
  at: string
  details: PaymentDetails
}

export interface Dispute {
  /** The provider's id of the dispute. */
  disputeId: string
  chargeTransactionId: string
  status: 'open' | 'won' | 'lost'
  /** Whether the provider has taken the amount from the merchant, and whether it has returned it. */
  fundsWithdrawn: boolean
  fundsReinstated: boolean
  amountMinor: bigint
  currencyCode: string
  /** The provider's code of the reason. */
  reason: string | null
  at: string
}

/** A movement of money. `key` and `reference` are null if it was not made by Tundish. */
export interface Movement {
  type: 'charge' | 'refund'
  key: string | null
  reference: string | null
  amountMinor: bigint
  currencyCode: string
  /** The provider's id of the charge or refund. */
  transactionId: string
  /** For a refund: the refunded charge, if the provider returned it. */
  chargeTransactionId?: string
  at: string
}
