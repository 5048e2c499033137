// Refunds at Airwallex, found in the list of their payment by our metadata.
import { outcomeOf } from '../movements.ts'
import type { Conflict, NotBegun, NotFound, Pending, Settled, Unknown } from '../outcomes.ts'
import { noDetails, type RefundAtProvider, type RefundReference, type RefundRequest } from '../provider.ts'
import { afterFirstResponse, causeOfRejection, textOf } from '../transport.ts'
import { type AirwallexApi, type Fields, isRepeated, responseError } from './api.ts'
import { rejected, retrieve } from './charges.ts'
import { majorNumber, ownIds, sumIn, timeOf } from './objects.ts'

type Outcome = Settled | Pending | Unknown

export async function refund(
  api: AirwallexApi,
  request: RefundRequest,
  signal: AbortSignal,
): Promise<Outcome | NotBegun | Conflict> {
  const { key, reference, amountMinor, currencyCode, chargeTransactionId } = request
  // The request names no currency. The payment may be another program's, or none.
  const found = await api.get(`/payment_intents/${encodeURIComponent(chargeTransactionId)}`, {}, signal)
  if (found.status !== 200) return notBegunOrRejected(request, found)
  if (sumIn(found.body, 'amount').currencyCode !== currencyCode)
    return rejected(request, { code: 'currency_mismatch' }, 'refund')
  const response = await api.post(
    '/refunds/create',
    {
      ...{ request_id: key, payment_intent_id: chargeTransactionId, amount: majorNumber(amountMinor, currencyCode) },
      metadata: { tundish_refund: reference, tundish_key: key },
    },
    signal,
  )
  if (response.status === 200) return outcomeOf(readRefund(response.body), request)
  if (isRepeated(response)) return afterFirstResponse(() => findRepeated(api, request, signal))
  return notBegunOrRejected(request, response)
}

async function findRepeated(
  api: AirwallexApi,
  request: RefundRequest,
  signal: AbortSignal,
): Promise<Outcome | Conflict> {
  const known = await find(api, request, signal)
  if (!known) return { outcome: 'unknown', why: 'the key was used, and its refund is not listed' }
  return known.amountMinor === request.amountMinor ? outcomeOf(known, request) : { outcome: 'conflict' }
}

function notBegunOrRejected(request: RefundRequest, { status, error }: { status: number; error: Fields }) {
  const cause = causeOfRejection(status)
  if (cause) return { outcome: 'not_begun' as const, why: responseError(status, error).message, cause }
  if (status < 400 || status >= 500) throw responseError(status, error)
  return rejected(request, error, 'refund')
}

export async function lookUpRefund(
  api: AirwallexApi,
  reference: RefundReference,
  signal: AbortSignal,
): Promise<Outcome | NotFound> {
  const known = await find(api, reference, signal)
  return known ? outcomeOf(known, reference) : { outcome: 'not_found' }
}

async function find(api: AirwallexApi, { key, handle, ...charge }: RefundReference, signal: AbortSignal) {
  const all = await refundsOf(api, charge, signal)
  return all.find((one) => one.key === key || (handle !== null && one.transactionId === handle))
}

/** All refunds of a payment, oldest first. Airwallex lists the newest first, and several may be made in one second. */
export async function refundsOf(
  api: AirwallexApi,
  { chargeTransactionId: id }: { chargeTransactionId: string },
  signal: AbortSignal,
): Promise<RefundAtProvider[]> {
  await retrieve(api, id, signal)
  const found: RefundAtProvider[] = []
  for await (const item of api.all('/refunds', { payment_intent_id: id }, signal)) found.unshift(readRefund(item))
  return found.sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0))
}

// `ACCEPTED` is a success that may still fail, as at other providers; `RECEIVED` is not sent to the card network yet.
const STATUS: Record<string, RefundAtProvider['status']> = {
  ACCEPTED: 'succeeded',
  SETTLED: 'succeeded',
  FAILED: 'failed',
}

export function readRefund(body: Fields): RefundAtProvider {
  const status = STATUS[String(body['status'])] ?? 'pending'
  const transactionId = String(body['id'])
  const at = timeOf(body['created_at'])
  return {
    ...{ ...ownIds(body), transactionId, status, at, ...sumIn(body, 'amount') },
    details: {
      ...noDetails,
      ...{ psp_transaction_type: 'refund', psp_transaction_id: transactionId, psp_status: textOf(body['status']) },
      ...(status === 'failed' ? FAILED : { psp_date: at }),
    },
  }
}

const FAILED = {
  ...{ psp_reason_code: 'refund_failed', psp_reason_type: 'FAILED', psp_reason_decline_type: 'soft' },
  psp_reason_message: 'The refund failed.',
}
