// Refunds through Stripe. There is no prepare: one with an unknown outcome is found again in the payment's list of refunds.
import {
  type Conflict,
  type NotBegun,
  type NotFound,
  noDetails,
  type PaymentDetails,
  type Pending,
  type RefundAtProvider,
  type RefundReference,
  type RefundRequest,
  type Settled,
} from '../provider.ts'
import { fieldsOf } from '../transport.ts'
import { type Fields, onceAnswered, pathOf, type StripeAnswer, type StripeApi, trouble, turnedAway } from './api.ts'
import { reasonOfError } from './details.ts'
import { toStripeAmount } from './money.ts'
import { readIntent, readSum, readTime, textOf } from './objects.ts'

type Outcome = Settled | Pending

/** Pays back a part of a payment. An error of Stripe is believed only when the list does not have the refund. */
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
  const answer = await api.post('/v1/refunds', params, request.key, signal)
  if (answer.status === 200) return outcomeOf(answer.body, request)
  return afterError(api, request, answer, signal)
}

/** Stripe takes an amount without a currency: that of the payment is read first. */
async function currencyMismatch(
  api: StripeApi,
  request: RefundRequest,
  signal: AbortSignal,
): Promise<Settled | NotBegun | undefined> {
  const answer = await api.get(pathOf('payment_intents', request.chargeTransactionId), {}, signal)
  if (answer.status !== 200) return notDone(request, answer)
  if (readIntent(answer.body).asked.currencyCode === request.currencyCode) return undefined
  return rejected(request, { code: 'currency_mismatch', message: 'The charge was made in another currency.' })
}

/** An error after which the refund may exist all the same, made by an earlier call whose key Stripe has forgotten. */
async function afterError(
  api: StripeApi,
  request: RefundRequest,
  answer: StripeAnswer,
  signal: AbortSignal,
): Promise<Outcome | NotBegun | Conflict> {
  if (answer.status >= 400 && answer.status < 500 && answer.status !== 409 && !turnedAway(answer.status)) {
    const known = await onceAnswered(() => find(api, request, signal))
    const sum = known && readSum(known, 'amount')
    if (known && sum?.amountMinor === request.amountMinor) return outcomeOf(known, request)
    if (known || answer.error['type'] === 'idempotency_error') return { outcome: 'conflict' }
  }
  return notDone(request, answer)
}

function notDone(request: RefundRequest, { status, error }: StripeAnswer): Settled | NotBegun {
  const cause = turnedAway(status)
  if (cause) return { outcome: 'not_begun', why: trouble(status, error).message, cause }
  if (status < 400 || status >= 500 || status === 409) throw trouble(status, error)
  return rejected(request, error)
}

function rejected({ reference, amountMinor, currencyCode }: RefundRequest, error: Fields): Settled {
  const details = { ...refundDetails, psp_status: 'rejected', ...reasonOfError(error) }
  return { outcome: 'failed', reference, amountMinor, currencyCode, details }
}

/** Not found is no proof yet: the call may be on its way. */
export async function lookUpRefund(
  api: StripeApi,
  reference: RefundReference,
  signal: AbortSignal,
): Promise<Outcome | NotFound> {
  const known = await find(api, reference, signal)
  return known ? outcomeOf(known, reference) : { outcome: 'not_found' }
}

/** All refunds of a payment, oldest first, also those made elsewhere. */
export async function refundsOf(
  api: StripeApi,
  chargeTransactionId: string,
  signal: AbortSignal,
): Promise<RefundAtProvider[]> {
  const refunds: RefundAtProvider[] = []
  for await (const item of api.all('/v1/refunds', { payment_intent: chargeTransactionId }, signal)) {
    refunds.unshift(readRefund(item))
  }
  return refunds
}

async function find(api: StripeApi, { key, chargeTransactionId }: RefundReference, signal: AbortSignal) {
  for await (const item of api.all('/v1/refunds', { payment_intent: chargeTransactionId }, signal)) {
    if (fieldsOf(item['metadata'])['tundish_key'] === key) return item
  }
  return undefined
}

function outcomeOf(body: Fields, asked: { reference: string }): Outcome {
  const { status, reference, amountMinor, currencyCode, details } = readRefund(body)
  if (status === 'pending') return { outcome: 'pending', why: `the refund is ${details.psp_status}` }
  return { outcome: status, reference: reference ?? asked.reference, amountMinor, currencyCode, details }
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
      psp_date: at,
      ...(hasFailed && reasonOfError({ code: failure_reason ?? status, message: 'The refund failed at the bank.' })),
    },
  }
}

const refundDetails: PaymentDetails = { ...noDetails, psp_transaction_type: 'refund', pm_type: 'card' }
