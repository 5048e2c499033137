// Movements of money as listed by a payment provider: charges, refunds and disputes.
import type { PaymentDetails } from '../../core/records/payment.ts'
import type { Pending, Settled, Sum } from './outcomes.ts'

/** A refund as the provider reports it. `key` and `reference` are null if Tundish did not make it. */
export interface RefundAtProvider extends Sum {
  key: string | null
  reference: string | null
  /** The provider's id of the refund. */
  transactionId: string
  status: 'pending' | 'succeeded' | 'failed'
  at: string
  details: PaymentDetails
}

/** The outcome of a refund that we asked for. */
export function outcomeOf(refund: RefundAtProvider, asked: { reference: string }): Settled | Pending {
  const { status, reference, amountMinor, currencyCode, details, transactionId } = refund
  if (status === 'pending') return { outcome: 'pending', why: `the refund is ${details.psp_status}`, transactionId }
  return { outcome: status, reference: reference ?? asked.reference, amountMinor, currencyCode, details }
}

export interface Dispute extends Sum {
  /** The provider's id of the dispute. */
  disputeId: string
  chargeTransactionId: string
  status: 'open' | 'won' | 'lost'
  /** Whether the provider has withdrawn the amount from the merchant. */
  fundsWithdrawn: boolean
  /** What the provider has returned of it: 0 if nothing, and of a lost dispute the part that had been refunded before. */
  reinstatedMinor: bigint
  /** The provider's code for the reason. */
  reason: string | null
  at: string
}

/** A movement of money. `key` and `reference` are null if Tundish did not make it. */
export interface Movement extends Sum {
  type: 'charge' | 'refund'
  key: string | null
  reference: string | null
  /** The provider's id of the charge or refund. */
  transactionId: string
  /** For a refund, the refunded charge, if the provider returned its id. */
  chargeTransactionId?: string
  /** Whether the provider has not decided yet, so that no money has moved so far. */
  isPending?: boolean
  /** Whether a charge was declined for good, so that no money moved under its key. */
  hasFailed?: boolean
  /** The provider's customer, if it has customers. */
  providerCustomer?: string
  at: string
}
