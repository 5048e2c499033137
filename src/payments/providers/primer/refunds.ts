// Refunds at Primer: transactions inside the payment, found by the `orderId` that they were given, which is our key.

import { outcomeOf } from '../movements.ts'
import type { Conflict, NotBegun, NotFound, Pending, Settled, Unknown, Withheld } from '../outcomes.ts'
import {
  type PaymentDetails,
  ProviderError,
  type RefundAtProvider,
  type RefundReference,
  type RefundRequest,
} from '../provider.ts'
import { afterFirstResponse, causeOfRejection } from '../transport.ts'
import { isKeyKnown, type PrimerApi, type PrimerResponse, paymentPath, responseError } from './api.ts'
import { retrieve, withheld } from './charges.ts'
import { common, reasonOfError, reasonOfStatus } from './details.ts'
import { type Payment, readPayment, type Transaction } from './objects.ts'

type Outcome = Settled | Pending | Unknown

/** Pays back a part of a payment. The payment is looked up first, because it is unknown for how long Primer remembers keys. */
export async function refund(
  api: PrimerApi,
  request: RefundRequest,
  signal: AbortSignal,
): Promise<Outcome | NotBegun | Conflict | Withheld> {
  const found = await api.get(paymentPath(request.chargeTransactionId), {}, signal)
  if (found.status !== 200) return notDone(request, found)
  const payment = readPayment(found.body)
  const known = findIn(payment, request)
  if (known) return known.amountMinor === request.amountMinor ? outcomeOf(known, request) : { outcome: 'conflict' }
  if (payment.asked.currencyCode !== request.currencyCode)
    return rejected(request, { errorId: 'currency_mismatch', description: 'The charge was made in another currency.' })
  const body = { amount: Number(request.amountMinor), orderId: request.key, reason: `${REASON}${request.reference}` }
  const response = await api.post(paymentPath(payment.id, 'refund'), body, request.key, signal)
  return afterFirstResponse(() => afterRequest(api, request, response, signal))
}

// Shown in Primer's dashboard, and returned with the refund.
const REASON = 'tundish_refund='

async function afterRequest(
  api: PrimerApi,
  request: RefundRequest,
  response: PrimerResponse,
  signal: AbortSignal,
): Promise<Outcome | NotBegun | Conflict | Withheld> {
  const { status, error } = response
  if (status === 200) {
    const made = findIn(readPayment(response.body), request)
    if (!made) throw new ProviderError('returned a payment without the refund')
    return outcomeOf(made, request)
  }
  if (isKeyKnown(response)) return withheld(response)
  if (status >= 400 && status < 500 && !causeOfRejection(status)) {
    const known = findIn(await retrieve(api, request.chargeTransactionId, signal), request)
    if (known) return known.amountMinor === request.amountMinor ? outcomeOf(known, request) : { outcome: 'conflict' }
    // A conflict that is not explained may be a request of ours that is under way.
    if (status === 409 && error['errorId'] !== 'PaymentAlreadyRefunded') throw responseError(status, error)
  }
  return notDone(request, response)
}

function notDone(request: RefundRequest, { status, error }: PrimerResponse): Settled | NotBegun {
  const cause = causeOfRejection(status)
  if (cause) return { outcome: 'not_begun', why: responseError(status, error).message, cause }
  if (status < 400 || status >= 500) throw responseError(status, error)
  return rejected(request, error)
}

function rejected({ reference, amountMinor, currencyCode }: RefundRequest, error: Record<string, unknown>): Settled {
  const details: PaymentDetails = {
    ...common({ body: {} } as Payment),
    psp_transaction_type: 'refund',
    psp_status: 'REJECTED',
    ...reasonOfError(error),
  }
  return { outcome: 'failed', reference, amountMinor, currencyCode, details }
}

/** Looks up a refund in its payment, which is always current. `not_found` is not final: the request may still be in transit. */
export async function lookUpRefund(
  api: PrimerApi,
  reference: RefundReference,
  signal: AbortSignal,
): Promise<Outcome | NotFound> {
  const known = findIn(await retrieve(api, reference.chargeTransactionId, signal), reference)
  return known ? outcomeOf(known, reference) : { outcome: 'not_found' }
}

/** All refunds of a payment, oldest first, including those that Tundish did not make. */
export const refundsOf = async (
  api: PrimerApi,
  { chargeTransactionId }: { chargeTransactionId: string },
  signal: AbortSignal,
) => refundsIn(await retrieve(api, chargeTransactionId, signal))

function findIn(payment: Payment, { key, handle }: Pick<RefundReference, 'key' | 'handle'>) {
  const all = refundsIn(payment)
  return all.find((one) => (handle === null ? one.key === key : one.transactionId === handle))
}

export const refundsIn = (payment: Payment): RefundAtProvider[] =>
  payment.refunds.map((one, n) => readRefund(payment, one, n))

/**
 * A refund has no id: Primer's example gives it the processor's id of the charge. It is named by its place among the
 * refunds of its payment, which are only added to. A refund without its own `orderId` was made by others.
 */
function readRefund(payment: Payment, refund: Transaction, place: number): RefundAtProvider {
  const { sum, orderId, reason, status, date, statusReason } = refund
  if (!sum) throw new ProviderError('returned a refund without amount and currency')
  const reference = reason?.startsWith(REASON) ? reason.slice(REASON.length) : null
  const isOurs = orderId !== null && orderId !== payment.orderId && (reference !== null || KEY.test(orderId))
  const transactionId = `${payment.id}/refund/${place + 1}`
  const result = resultOf(refund)
  return {
    key: isOurs ? orderId : null,
    reference: isOurs ? reference : null,
    transactionId,
    status: result,
    ...sum,
    at: date ?? payment.updatedAt ?? payment.date ?? EPOCH,
    details: {
      ...common(payment),
      psp_transaction_type: 'refund',
      psp_transaction_id: transactionId,
      psp_status: status === '' ? null : status,
      psp_date: result === 'failed' ? null : date,
      ...(result === 'failed' && reasonOfStatus(statusReason ?? {}, status)),
    },
  }
}

// The form of our keys.
const KEY = /^[0-9a-f]{64}$/
const EPOCH = '1970-01-01T00:00:00.000000Z'

/** A refund whose processor did not respond in time may have been made. */
function resultOf({ status, statusReason }: Transaction): RefundAtProvider['status'] {
  if (status === 'SETTLED') return 'succeeded'
  const hasEnded = status === 'DECLINED' || status === 'FAILED' || status === 'CANCELLED'
  return hasEnded && statusReason?.['type'] !== 'GATEWAY_TIMEOUT' ? 'failed' : 'pending'
}
