// Settles a refund by the provider's verdict, after checking that the verdict is about this refund and in its currency.
import { isUuid } from '../../../lib/ids.ts'
import type { Query } from '../../../lib/pg/types.ts'
import type { Provider } from '../../providers/provider.ts'
import type { BillingContext } from '../context.ts'
import type { Verdict } from '../movement/kind-of-movement.ts'
import type { Note } from '../movement/provider-calls.ts'
import type { Refund } from './row.ts'
import { settle } from './settle.ts'

/**
 * Settles the refund, or returns why an operator has to judge it: the verdict names another refund of ours, or another
 * currency than the order's, in which its sums would mean nothing.
 */
export async function settleByVerdict(
  { db }: BillingContext,
  _provider: Provider | undefined,
  refund: Refund,
  verdict: Verdict,
  how: { because?: string; note?: Note } = {},
): Promise<Refund | { mismatch: 'reference' | 'currency' }> {
  if (verdict.outcome !== 'refused') {
    if (verdict.currencyCode !== refund.currency_code) return { mismatch: 'currency' }
    if (await isOtherRefund(db.query, refund, verdict.reference)) return { mismatch: 'reference' }
  }
  return settle(db, refund, verdict, how)
}

/** Whether this is the id of another refund of the organization. */
async function isOtherRefund(query: Query, { organization_id, refund_id }: Refund, id: string): Promise<boolean> {
  if (!isUuid(id) || id === refund_id) return false
  const params = [organization_id, id]
  const found = await query('select 1 from refunds where organization_id = $1 and refund_id = $2', params)
  return found.length > 0
}
