// Looks up a refund at the provider: by our key, or, if it was found there and adopted, by the provider's id of it.
import type { NotFound, Pending, Refused, Settled, Unknown } from '../../providers/outcomes.ts'
import type { Provider, RefundAtProvider } from '../../providers/provider.ts'
import { type Refund, reference } from './refunds.ts'

/**
 * The outcome of a refund at the provider. One that was made there has no key of ours, and the provider may have forgotten
 * the key of one that a restored backup had lost.
 */
export async function lookUpRefund(
  provider: Provider,
  refund: Refund,
  signal?: AbortSignal,
): Promise<Settled | Refused | Pending | NotFound | Unknown> {
  if (refund.is_adopted === 'f') return provider.lookUpRefund(reference(refund), signal)
  const { chargeTransactionId, handle } = reference(refund)
  const refunds = await provider.refundsOf({ chargeTransactionId }, signal)
  if (!Array.isArray(refunds)) return refunds
  const found = refunds.find(({ transactionId }) => transactionId === handle)
  return found ? outcomeOf(found, refund) : { outcome: 'not_found' }
}

function outcomeOf(
  { status, amountMinor, currencyCode, details }: RefundAtProvider,
  refund: Refund,
): Settled | Pending {
  if (status === 'pending') return { outcome: 'pending', why: 'the refund is pending' }
  return { outcome: status, reference: refund.refund_id, amountMinor, currencyCode, details }
}
