// Refunds through Stripe. They need no prepare, because a refund with an unknown outcome is found in the payment's list.
import { outcomeOf } from '../movements.ts'
import type { Conflict, NotBegun, NotFound, Pending, Settled } from '../outcomes.ts'
import {
  noDetails,
  type PaymentDetails,
  type RefundAtProvider,
  type RefundReference,
  type RefundRequest,
} from '../provider.ts'
import { afterFirstResponse, causeOfRejection, fieldsOf, textOf } from '../transport.ts'
import { type Fields, pathOf, responseError, type StripeApi, type StripeResponse } from './api.ts'
import { reasonOfError } from './details.ts'
import { toStripeAmount } from './money.ts'
import { readIntent, readSum, readTime } from './objects.ts'

type Outcome = Settled | Pending

/** Pays back a payment or a part of it. After an error response the outcome is `failed` only if the list lacks the refund. */
export async function refund(
  api: StripeApi,
  request: RefundRequest,
  signal: AbortSignal,
): Promise<Outcome | NotBegun | Conflict> {
  const mismatch = await currencyMismatch(api, request, signal)
  if (mismatch) return mismatch
  const amount = toStripeAmount(request.amountMinor, request.currencyCode)
  if (amount === undefined) {
    return rejected(request, { code: 'amount_not_possible', message: 'Stripe cannot refund this amount exactly.' })
  }
  const metadata = { tundish_refund: request.reference, tundish_key: request.key }
  const params = { payment_intent: request.chargeTransactionId, amount: String(amount), metadata }
  const response = await api.post('/v1/refunds', params, request.key, signal)
  if (response.status === 200) return outcomeOf(readRefund(response.body), request)
  return afterError(api, request, response, signal)
}

/** Compares the currency with that of the payment, because Stripe's refunds have an amount but no currency. */
async function currencyMismatch(
  api: StripeApi,
  request: RefundRequest,
  signal: AbortSignal,
): Promise<Settled | NotBegun | undefined> {
  const response = await api.get(pathOf('payment_intents', request.chargeTransactionId), {}, signal)
  if (response.status !== 200) return notDone(request, response)
  if (readIntent(response.body).asked.currencyCode === request.currencyCode) return undefined
  return rejected(request, { code: 'currency_mismatch', message: 'The charge was made in another currency.' })
}

/** The outcome after an error response. The refund may exist, made by an earlier call whose key Stripe has forgotten. */
async function afterError(
  api: StripeApi,
  request: RefundRequest,
  response: StripeResponse,
  signal: AbortSignal,
): Promise<Outcome | NotBegun | Conflict> {
  if (
    response.status >= 400 &&
    response.status < 500 &&
    response.status !== 409 &&
    !causeOfRejection(response.status)
  ) {
    const known = await afterFirstResponse(() => find(api, request, signal))
    const sum = known && readSum(known, 'amount')
    if (known && sum?.amountMinor === request.amountMinor) return outcomeOf(readRefund(known), request)
    if (known || response.error['type'] === 'idempotency_error') return { outcome: 'conflict' }
  }
  return notDone(request, response)
}

function notDone(request: RefundRequest, { status, error }: StripeResponse): Settled | NotBegun {
  const cause = causeOfRejection(status)
  if (cause) return { outcome: 'not_begun', why: responseError(status, error).message, cause }
  if (status < 400 || status >= 500 || status === 409) throw responseError(status, error)
  return rejected(request, error)
}

function rejected({ reference, amountMinor, currencyCode }: RefundRequest, error: Fields): Settled {
  const details = { ...refundDetails, psp_status: 'rejected', ...reasonOfError(error) }
  return { outcome: 'failed', reference, amountMinor, currencyCode, details }
}

/** Looks up a refund. `not_found` is not final, because the request may still be in transit. */
export async function lookUpRefund(
  api: StripeApi,
  reference: RefundReference,
  signal: AbortSignal,
): Promise<Outcome | NotFound> {
  const known = await find(api, reference, signal)
  return known ? outcomeOf(readRefund(known), reference) : { outcome: 'not_found' }
}

/** All refunds of a payment, oldest first, including those that Tundish did not make. */
export async function refundsOf(
  api: StripeApi,
  { chargeTransactionId }: { chargeTransactionId: string },
  signal: AbortSignal,
): Promise<RefundAtProvider[]> {
  const refunds: RefundAtProvider[] = []
  for await (const item of api.all('/v1/refunds', { payment_intent: chargeTransactionId }, signal)) {
    refunds.unshift(readRefund(item))
  }
  return refunds
}

/** By our key, or by its id: a user of Stripe's dashboard may have removed the metadata. */
async function find(api: StripeApi, { key, handle, chargeTransactionId }: RefundReference, signal: AbortSignal) {
  for await (const item of api.all('/v1/refunds', { payment_intent: chargeTransactionId }, signal)) {
    const isKnown = handle === null ? fieldsOf(item['metadata'])['tundish_key'] === key : item['id'] === handle
    if (isKnown) return item
  }
  return undefined
}

function readRefund(body: Fields): RefundAtProvider {
  const { id, status, failure_reason, metadata } = body
  const meta = fieldsOf(metadata)
  const hasFailed = status === 'failed' || status === 'canceled'
  const at = readTime(body['created'])
  return {
    key: textOf(meta['tundish_key']),
    reference: textOf(meta['tundish_refund']),
    transactionId: String(id),
    status: hasFailed ? 'failed' : status === 'succeeded' ? 'succeeded' : 'pending',
    ...readSum(body, 'amount'),
    at,
    details: {
      ...refundDetails,
      psp_transaction_id: String(id),
      psp_status: textOf(status),
      // Stripe has no time of the failure.
      psp_date: hasFailed ? null : at,
      psp_reason_code: textOf(body['reason']),
      ...(hasFailed && reasonOfError({ code: failure_reason ?? status, message: 'The refund failed at the bank.' })),
    },
  }
}

const refundDetails: PaymentDetails = { ...noDetails, psp_transaction_type: 'refund', pm_type: 'card' }
