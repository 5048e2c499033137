// A refund, told top to bottom: seen before? allowed? claim, pay back, settle, answer.
import type { Transaction } from '../../audit/audit.ts'
import type { Provider } from '../../providers/provider.ts'
import { compare, fromDatabase, minorFromDatabase } from '../amount.ts'
import { isVerdict } from '../charge/settle.ts'
import type { BillingContext } from '../context.ts'
import { keyReused } from '../keys.ts'
import { providerOf, unreachable } from '../psp.ts'
import { lookIntoRefund } from '../unknown/ask-provider.ts'
import { leaseAllowsCall, leaseMs } from '../unknown/lease.ts'
import { noted } from '../unknown/provider-calls.ts'
import { refundAnswer } from './answer.ts'
import { allow, claim, findByKey, findRefundable, handOver, type Refund, reference } from './refunds.ts'
import type { RefundRequest } from './request.ts'
import { settle } from './settle.ts'

/** What the caller adds to the claim. */
export interface Claiming {
  /** Runs last in the claim's transaction, for what has to be true of every refund that was begun; may commit it. */
  onClaim(transaction: Transaction, refund: Refund): Promise<void>
  /** Runs the claim when it is its turn. Its lease counts from then on, however long that took. */
  inTurn<T>(claim: () => Promise<T>): Promise<T>
}

/**
 * Pays back a charge or a part of it, at most once for each key. Throws an `ApiError` for what is refused before anything
 * is begun; from the claim on, as with charges, every way ends in an answer and an unknown outcome is no failure.
 */
export async function refund(
  context: BillingContext,
  organizationId: string,
  request: RefundRequest,
  claiming: Claiming = PLAIN,
) {
  const { db, clock, providers, providerTimeoutMs } = context
  const seen = await findByKey(db.query, organizationId, request)
  if (seen) return answerFor(request, seen, true)

  const order = await findRefundable(db.query, organizationId, request)
  // What stands in the way may be this very refund, begun since the key was looked for.
  const begun = await findByKey(db.query, organizationId, request)
  if (begun) return answerFor(request, begun, true)
  allow(order, request)
  const provider = await providerOf(providers, organizationId, order)
  if (!provider.admits()) throw unreachable()

  let begunMs = 0
  const claimed = await claiming.inTurn(() => {
    begunMs = clock.monotonicMs()
    return claim(db, organizationId, request, leaseMs(providerTimeoutMs, 1), claiming.onClaim)
  })
  if (claimed.outcome === 'known') return answerFor(request, claimed.refund, true)

  const outcome = await payBack(context, provider, claimed.refund, claimed.chargeTransactionId, begunMs)
  return answerFor(request, outcome, false)
}

const PLAIN: Claiming = { onClaim: async () => {}, inTurn: (claim) => claim() }

/** The answer of a refund; the key may turn out to stand for another one. */
function answerFor(request: RefundRequest, refund: Refund, isReplay: boolean) {
  const isSame =
    request.orderId === refund.order_id &&
    request.isSoft === (refund.soft_refund === 't') &&
    (request.amount === undefined
      ? refund.amount_given === 'f'
      : refund.amount_given === 't' && compare(request.amount, fromDatabase(refund.amount)) === 0)
  if (!isSame) throw keyReused('another refund')
  return refundAnswer(refund, isReplay)
}

/** Pays back a claimed refund, and answers it as it stands then. Whatever goes wrong from here on is left to settling. */
async function payBack(
  context: BillingContext,
  provider: Provider,
  refund: Refund,
  chargeTransactionId: string,
  begunMs: number,
): Promise<Refund> {
  const { db, clock, log, providerTimeoutMs } = context
  try {
    if (!leaseAllowsCall(providerTimeoutMs, clock.monotonicMs() - begunMs))
      return await leaveToSettling(context, refund)
    const { amount, currency_code: currencyCode } = refund
    const money = { amountMinor: minorFromDatabase(amount, currencyCode), currencyCode }
    const verdict = await noted(context, refund, 'refund', () =>
      provider.refund({ ...reference(refund), ...money, chargeTransactionId, traceparent: context.traceparent }),
    )
    if (isVerdict(verdict)) return await settle(db, refund, verdict)
    if (verdict.outcome === 'conflict') return await lookIntoRefund(context, refund)
    return await leaveToSettling(context, refund)
  } catch (error) {
    log.error({ err: error, refund_id: refund.refund_id }, 'A refund is left to settling.')
    return refund
  }
}

async function leaveToSettling({ db }: BillingContext, refund: Refund): Promise<Refund> {
  await handOver(db, refund)
  return refund
}
