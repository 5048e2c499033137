// Ends payments that the provider authorized after their order had ended, so that nothing is charged for an order that is not paid,
// and no authorization stays on the customer's card.
import type { Provider } from '../../providers/provider.ts'
import type { BillingContext } from '../context.ts'
import type { InProgress } from '../movement/in-progress.ts'
import type { Kind } from '../movement/kind-of-movement.ts'

/**
 * Whether an undecided payment under the row's key is not the one by which the row ended: its request came later than the last
 * look-up, or it is a second payment under the key.
 */
export function isLate(kind: Kind<InProgress>, row: InProgress, transactionId: string): boolean {
  if (row.status === 'cancelled' || row.status === 'failed') return true
  const handle = kind.handleOf(row)
  return row.status === 'succeeded' && handle !== null && handle !== transactionId
}

/** Cancels it at the provider. Returns the payment's state there, in words, if it is not cancelled. */
export async function endLate(
  context: BillingContext,
  provider: Provider,
  kind: Kind<InProgress>,
  row: InProgress,
  transactionId: string,
): Promise<string | undefined> {
  const { outcome } = await kind.refuseLate!(context, provider, row, transactionId)
  const ids = { ...kind.idsOf(row), transaction_id: transactionId }
  if (outcome === 'refused' || outcome === 'failed') {
    context.log.warn(ids, 'A payment that came after its order had ended is cancelled at the provider.')
    return undefined
  }
  context.log.error(ids, 'A payment that came after its order had ended cannot be cancelled at the provider.')
  return outcome === 'succeeded' ? 'succeeded' : 'still open'
}
