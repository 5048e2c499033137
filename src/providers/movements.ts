// Money that moved at a payment provider, as it lists it: charges, refunds and disputes.
import type { PaymentDetails } from './payment-details.ts'

/** A refund as the provider has it. `key` and `reference` are null for one that was not made by us. */
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
  /** Whether the provider has taken the amount from the merchant, and whether it gave it back. */
  fundsWithdrawn: boolean
  fundsReinstated: boolean
  amountMinor: bigint
  currencyCode: string
  /** The provider's word for the reason. */
  reason: string | null
  at: string
}

/** Money that moved. `key` and `reference` are null when the movement was not made by us. */
export interface Movement {
  type: 'charge' | 'refund'
  key: string | null
  reference: string | null
  amountMinor: bigint
  currencyCode: string
  /** The provider's id of the charge or refund. */
  transactionId: string
  /** Of a refund: the charge that it pays back, where the provider told. */
  chargeTransactionId?: string
  at: string
}
