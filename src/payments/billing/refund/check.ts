// How the outcome of a refund is found at the provider, and the refund refused or settled: it is looked up by our key, by the
// provider's id of it, or, if neither is there, by its amount.
import type { Query, Statement } from '../../../lib/pg/types.ts'
import type { NotFound, Pending, Refused, Settled, Unknown } from '../../providers/outcomes.ts'
import type { Provider, RefundAtProvider } from '../../providers/provider.ts'
import { minorFromDatabase } from '../amount.ts'
import type { BillingContext } from '../context.ts'
import { isKeyRemembered } from '../movement/age.ts'
import { askThenRefuse } from '../movement/check-status.ts'
import type { Checked } from '../movement/kind-of-movement.ts'
import { noted } from '../movement/provider-calls.ts'
import { renewLeaseForFirstCall } from '../movement/renew-lease.ts'
import { type Refund, reference, refundRequest, refundsInProgress } from './row.ts'
import { softVerdict } from './settle.ts'
import { settleByVerdict } from './verdict.ts'

export const REFUND: Checked<Refund> = {
  type: 'refund',
  rows: refundsInProgress,
  idsOf: ({ order_id, refund_id }) => ({ order_id, refund_id }),
  lookUp: lookUpRefund,
  replay: (provider, refund, signal) => provider.refund(refundRequest(refund, undefined), signal),
  async ask(context, provider, refund, signal) {
    if (refund.soft_refund) return softVerdict(refund)
    // It exists at the provider, so there is nothing to refuse, and no call of ours to repeat.
    if (refund.is_adopted) {
      const found = await noted(context, refund, 'look_up', () => lookUpRefund(provider, refund, signal))
      return found.outcome === 'not_found' ? { outcome: 'unknown', why: 'the provider no longer lists it' } : found
    }
    // No call was made for it, so this is its first: not later than the provider remembers the key.
    if (refund.is_unsent && (await mayBeSent(context, provider, refund, signal)))
      return sendLate(context, provider, refund, signal)
    const result = await askThenRefuse(context, REFUND, provider, refund, !provider.refuseRefund, signal)
    if (result.outcome !== 'refused' || provider.refuseRefund) return result
    return (await findWithoutKey(context.db.query, provider, refund, signal)) ?? result
  },
  async refuse(context, provider, refund, signal) {
    if (!provider.refuseRefund) return { outcome: 'unknown', why: 'the provider cannot cancel a refund' }
    return noted(context, refund, 'refuse', () => provider.refuseRefund!(reference(refund), signal))
  },
  seen: (refund) => ({ ...refund, is_unsent: false }),
  settle: settleByVerdict,
}

/**
 * Whether the first call of a refund may still be made. Where it is unknown for how long a provider remembers keys, the refund is
 * looked up first.
 */
async function mayBeSent(context: BillingContext, provider: Provider, refund: Refund, signal?: AbortSignal) {
  if (provider.traits.keyLifeMs !== 'unknown') return isKeyRemembered(provider, refund)
  const found = await noted(context, refund, 'look_up', () => lookUpRefund(provider, refund, signal))
  return found.outcome === 'not_found'
}

async function sendLate(context: BillingContext, provider: Provider, refund: Refund, signal?: AbortSignal) {
  const held = await renewLeaseForFirstCall(context, refundsInProgress, refund)
  if (!held) return { outcome: 'not_begun', why: 'the lease was too old', cause: 'busy' } as const
  return noted(context, held, 'refund', () => provider.refund(refundRequest(held, undefined), signal))
}

/**
 * The outcome of a refund at the provider. One that was made there has no key of ours, and the provider may have forgotten
 * the key of one that a restored backup had lost.
 */
async function lookUpRefund(
  provider: Provider,
  refund: Refund,
  signal?: AbortSignal,
): Promise<Settled | Refused | Pending | NotFound | Unknown> {
  if (!refund.is_adopted) return provider.lookUpRefund(reference(refund), signal)
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
async function findWithoutKey(
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
