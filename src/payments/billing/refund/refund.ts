// A refund, from top to bottom: known key, or refused? Else claim, pay back, settle, respond.
import { ApiError } from '../../../lib/errors.ts'
import { type Provider, ProviderError } from '../../providers/provider.ts'
import { compare, fromDatabase, minorFromDatabase } from '../amount.ts'
import type { BillingContext } from '../context.ts'
import { conclude } from '../movement/check-status.ts'
import { keyReused } from '../movement/keys.ts'
import { leaseMs } from '../movement/lease.ts'
import { timed } from '../movement/provider-calls.ts'
import { notBegun, providerOf, providerOfClaimed, unreachable } from '../movement/psp.ts'
import { renewLeaseForCall } from '../movement/renew-lease.ts'
import { adoptRefundsOfCharge } from './adopt-of-charge.ts'
import { REFUND } from './check.ts'
import { claim, type OnClaim } from './claim.ts'
import type { RefundRequest } from './request.ts'
import { refundResponse } from './response.ts'
import { findByKey, type Refund, refundRequest, refundsInProgress } from './row.ts'
import { allow, findRefundable, type Refundable } from './rules.ts'
import { settle, softVerdict } from './settle.ts'

/** What the caller adds to the claim. */
export interface Claiming {
  onClaim: OnClaim
  /** Runs the claim when it is its turn. Its lease counts from then on, however long that took. */
  inTurn<T>(claim: () => Promise<T>): Promise<T>
}

const PLAIN: Claiming = { onClaim: async () => {}, inTurn: (claim) => claim() }

/**
 * Pays back a charge or a part of it, at most once for each key. Throws an `ApiError` if the refund is refused before anything
 * is begun at the provider. After that it always returns a response, as for charges, and an unknown outcome is not a failure.
 */
export async function refund(
  context: BillingContext,
  organizationId: string,
  request: RefundRequest,
  claiming: Claiming = PLAIN,
) {
  const { db, clock, providers, providerTimeoutMs } = context
  const seen = await findByKey(db.query, organizationId, request)
  if (seen) return responseFor(request, seen, true)

  const order = await findRefundable(db.query, organizationId, request)
  await bringBackForgotten(context, organizationId, order)
  // A refund with this key may have begun since the key was looked up, and its own row would refuse it.
  const begun = await findByKey(db.query, organizationId, request)
  if (begun) return responseFor(request, begun, true)
  const amount = allow(order, request)
  if (!request.isSoft) checkReady(await providerOf(providers, organizationId, order), amount, order.currency_code)

  let sentMs = 0
  const claimed = await claiming.inTurn(() => {
    sentMs = clock.monotonicMs()
    return claim(db, organizationId, request, leaseMs(providerTimeoutMs, 1), claiming.onClaim)
  })
  if (!claimed.isNew) return responseFor(request, claimed.refund, true)
  return responseFor(request, await submit(context, claimed.refund, sentMs), false)
}

/** Throws unless the provider takes the refund now: a 400 for what it can never take, and else a 503. */
function checkReady(provider: Provider, amount: string, currencyCode: string): void {
  const amountMinor = minorFromDatabase(amount, currencyCode)
  const why = provider.acceptsRefund?.({ amountMinor, currencyCode })
  if (why !== undefined) throw new ApiError(400, 'not_accepted_by_provider', why)
  if (!provider.admits()) throw unreachable()
}

/**
 * A restored backup may have forgotten refunds of the order, this one among them, and the provider may have forgotten
 * their keys: they are adopted before anything is paid back. Throws a 503 if the provider cannot list them.
 */
async function bringBackForgotten(
  context: BillingContext,
  organizationId: string,
  { may_lack_refunds, charge_transaction_id, psp, psp_merchant_id }: Refundable,
): Promise<void> {
  if (!may_lack_refunds || charge_transaction_id === null) return
  const provider = await context.providers.of(organizationId, psp, psp_merchant_id)
  if (!provider) return
  try {
    const at = { psp, merchantId: provider.merchantId, organizationId }
    await adoptRefundsOfCharge(context, provider, at, charge_transaction_id)
  } catch (error) {
    if (error instanceof ProviderError) throw unreachable()
    throw error
  }
}

/** The response for a refund. Throws if its key was used for another one. */
function responseFor(request: RefundRequest, refund: Refund, isReplay: boolean) {
  const isSame =
    request.orderId === refund.order_id && request.isSoft === refund.soft_refund && isSameAmount(request, refund)
  if (!isSame) throw keyReused('another refund')
  return refundResponse(refund, isReplay)
}

/** For a refund that was adopted from the provider, it is not known whether the caller gave an amount. */
function isSameAmount({ amount }: RefundRequest, { amount_given, asked_amount, is_adopted }: Refund): boolean {
  if (amount === undefined) return !amount_given || is_adopted
  return amount_given && compare(amount, fromDatabase(asked_amount)) === 0
}

/**
 * Pays back a claimed refund and returns it as it is then. After any failure settling finds the outcome. Throws a 503 when the
 * provider turned the refund away before it began, and a 400 when its account is no longer connected, so that the key is
 * free again.
 */
async function submit(context: BillingContext, refund: Refund, sentMs: number): Promise<Refund> {
  try {
    if (refund.soft_refund) return await settle(context.db, refund, softVerdict(refund))
    const provider = await providerOfClaimed(context, refundsInProgress, refund)
    const held = await renewLeaseForCall(context, refundsInProgress, refund, sentMs)
    if (!held) return refund
    const { result, note } = await timed(context, held, 'refund', () =>
      provider.refund(refundRequest(held, context.traceparent)),
    )
    if (result.outcome !== 'not_begun') return await conclude(context, REFUND, provider, held, result, note)
    await refundsInProgress.giveBack(context.db, held)
    throw notBegun(context, provider, result)
  } catch (error) {
    if (error instanceof ApiError) throw error
    context.log.error({ err: error, refund_id: refund.refund_id }, 'A refund is left to settling.')
    return refund
  }
}
