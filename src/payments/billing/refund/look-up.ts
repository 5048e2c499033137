// Looks up a refund at the provider: by our key, by the provider's id of it, or, if neither is there, by its amount.
import type { Query, Statement } from '../../../lib/pg/types.ts'
import type { NotFound, Pending, Refused, Settled, Unknown } from '../../providers/outcomes.ts'
import type { Provider, RefundAtProvider } from '../../providers/provider.ts'
import { minorFromDatabase } from '../amount.ts'
import { type Refund, reference } from './row.ts'

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

// The provider's clock may be behind the database's by this much.
const CLOCKS_DIFFER = "interval '5 minutes'"

/** SQL: whether a refund without our key, which the provider made at `at`, may be the refund `r` of ours. */
export const MAY_BE_MADE_AT = (at: string) =>
  `r.provider_transaction_id is null and not r.is_unsent and r.created_at <= ${at} + ${CLOCKS_DIFFER}`

/**
 * The outcome of a refund that was sent and that the provider does not list under our key. A user of the provider's dashboard may
 * have removed its metadata, so a refund of the same charge and amount that nothing else explains counts as this one: ending this
 * one as failed would invite the caller to pay back twice. Undefined: there is none.
 */
export async function findWithoutKey(
  query: Query,
  provider: Provider,
  refund: Refund,
  signal?: AbortSignal,
): Promise<Settled | Pending | Unknown | undefined> {
  const refunds = await provider.refundsOf(reference(refund), signal)
  if (!Array.isArray(refunds)) return refunds
  const amountMinor = minorFromDatabase(refund.amount, refund.currency_code)
  const possible = refunds.filter(
    (one) =>
      one.key === null &&
      one.status !== 'failed' &&
      one.amountMinor === amountMinor &&
      one.currencyCode === refund.currency_code,
  )
  const ids = possible.map(({ transactionId }) => transactionId)
  const times = possible.map(({ at }) => at)
  const { organization_id, refund_id } = refund
  const [unexplained] = await query<{ id: string }>(FIND_UNEXPLAINED, [organization_id, refund_id, ids, times])
  const found = possible.find(({ transactionId }) => transactionId === unexplained?.id)
  return found && outcomeOf(found, refund)
}

const FIND_UNEXPLAINED: Statement = {
  name: 'find unexplained refund at provider',
  text: `
    select t.id from refunds r, unnest($3::text[], $4::timestamptz[]) as t (id, at)
    where r.organization_id = $1 and r.refund_id = $2 and ${MAY_BE_MADE_AT('t.at')}
      and not exists (select from refunds other where other.organization_id = $1 and other.order_id = r.order_id
        and other.provider_transaction_id = t.id)
    order by t.at limit 1`,
}

function outcomeOf(
  { status, amountMinor, currencyCode, details, transactionId }: RefundAtProvider,
  refund: Refund,
): Settled | Pending {
  if (status === 'pending') return { outcome: 'pending', why: 'the refund is pending', transactionId }
  return { outcome: status, reference: refund.refund_id, amountMinor, currencyCode, details }
}
