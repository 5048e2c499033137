// Charges a payment consent at Airwallex: creates a PaymentIntent, confirms it, looks it up, and cancels it.
import { hash } from 'node:crypto'
import type { Conflict, NotBegun, NotFound, Prepared, Refused, Settled, Unconfirmed, Unknown } from '../outcomes.ts'
import { type ChargeRequest, noDetails, ProviderError, type Reference } from '../provider.ts'
import { afterFirstResponse, causeOfRejection } from '../transport.ts'
import { type AirwallexApi, type AirwallexResponse, isRepeated, responseError } from './api.ts'
import { detailsOf, type Intent, majorNumber, readIntent } from './objects.ts'

type Verdict = Settled | Unknown | Refused | Unconfirmed

/** A `request_id` of at most 64 characters for each call under a key. */
const idOf = (key: string, verb: string) => hash('sha256', `${key} ${verb}`, 'hex')
const pathOf = (id: string, verb = '') => `/payment_intents/${encodeURIComponent(id)}${verb && `/${verb}`}`

/** Creates the payment without a payment method, so that no money can move. Its `merchant_order_id` is our key. */
export async function prepare(
  api: AirwallexApi,
  request: ChargeRequest,
  signal: AbortSignal,
): Promise<Prepared | Settled | NotBegun | Unknown | Conflict> {
  const { key, reference, amountMinor, currencyCode, providerCustomer, token } = request
  const response = await api.post(
    '/payment_intents/create',
    {
      request_id: idOf(key, 'create'),
      amount: majorNumber(amountMinor, currencyCode),
      ...{ currency: currencyCode, merchant_order_id: key },
      ...(providerCustomer !== null && { customer_id: providerCustomer }),
      // The consent is given when the payment is confirmed, and that call knows only the handle.
      metadata: { tundish_order: reference, tundish_key: key, tundish_card: token },
    },
    signal,
  )
  if (response.status === 200) return prepared(readIntent(response.body))
  if (isRepeated(response)) return afterFirstResponse(() => findRepeated(api, request, signal))
  return notBegunOrRejected(request, response)
}

const prepared = ({ id, customer }: Intent): Prepared => ({
  ...{ outcome: 'prepared', handle: id },
  ...(customer !== null && { providerCustomer: customer }),
})

/** The payment that was created under the key before: a retry, or a lost order. Another amount is a conflict. */
async function findRepeated(api: AirwallexApi, request: ChargeRequest, signal: AbortSignal) {
  const intent = await find(api, request, signal)
  if (!intent) return { outcome: 'unknown' as const, why: 'the key was used, and its payment is not listed' }
  const { amountMinor, currencyCode } = intent.asked
  const isSame = amountMinor === request.amountMinor && currencyCode === request.currencyCode
  return isSame ? prepared(intent) : { outcome: 'conflict' as const }
}

/**
 * The payment of a key that charged or may charge. There may be several, because a call whose response was lost is repeated after
 * Airwallex has forgotten its id: the others are cancelled.
 */
async function find(api: AirwallexApi, reference: Reference, signal: AbortSignal): Promise<Intent | undefined> {
  const found: { intent: Intent; outcome: Verdict['outcome'] }[] = []
  for await (const item of api.all('/payment_intents', { merchant_order_id: reference.key }, signal)) {
    const intent = readIntent(item)
    found.push({ intent, outcome: judge(intent, reference).outcome })
  }
  const [best, ...others] = found.sort((one, other) => RANK[one.outcome] - RANK[other.outcome])
  for (const { intent, outcome } of others)
    if (intent.status !== 'CANCELLED' && (outcome === 'failed' || outcome === 'unconfirmed'))
      await cancelForGood(api, intent, reference, signal)
  return best?.intent
}

const RANK: Record<Verdict['outcome'], number> = { succeeded: 0, unknown: 1, failed: 2, unconfirmed: 3, refused: 4 }

/** Finds the payment under our key, for an order whose handle was lost. */
export async function findByKey(
  api: AirwallexApi,
  request: Reference,
  signal: AbortSignal,
): Promise<Prepared | Settled | NotFound | Unknown> {
  const intent = await find(api, request, signal)
  if (!intent) return { outcome: 'not_found' }
  const verdict = await conclude(api, intent, request, signal)
  if (verdict.outcome === 'unconfirmed') return prepared(intent)
  // A cancelled payment can no longer charge, so another may be made.
  return verdict.outcome === 'refused' ? { outcome: 'not_found' } : verdict
}

function notBegunOrRejected(request: ChargeRequest, { status, error }: AirwallexResponse): Settled | NotBegun {
  const cause = causeOfRejection(status)
  if (cause) return { outcome: 'not_begun', why: responseError(status, error).message, cause }
  if (status < 400 || status >= 500) throw responseError(status, error)
  return rejected(request, error, 'sale')
}

/** The outcome of a request that was rejected for good. */
export function rejected(
  { reference, amountMinor, currencyCode }: Pick<ChargeRequest, 'reference' | 'amountMinor' | 'currencyCode'>,
  error: Record<string, unknown>,
  type: 'sale' | 'refund',
): Settled {
  const details = {
    ...noDetails,
    ...{ psp_transaction_type: type, psp_status: 'rejected', psp_reason_type: 'request_rejected' },
    psp_reason_code: String(error['code'] ?? 'unknown'),
    ...{ psp_reason_message: String(error['message'] ?? 'The request was rejected.'), psp_reason_decline_type: 'soft' },
  }
  return { outcome: 'failed', reference, amountMinor, currencyCode, details }
}

/** Confirms the payment with its consent, once. After any other response the payment itself says what it has become. */
export async function confirm(
  api: AirwallexApi,
  request: Reference & { handle: string },
  signal: AbortSignal,
): Promise<Settled | Unknown | Refused> {
  const prepared = await retrieve(api, request.handle, signal)
  const before = await conclude(api, prepared, request, signal)
  if (before.outcome !== 'unconfirmed') return before
  const body = { request_id: idOf(request.key, 'confirm'), payment_consent_id: prepared.card }
  const { status, body: confirmed, error } = await api.post(pathOf(request.handle, 'confirm'), body, signal)
  if (status >= 500 || status < 200) throw responseError(status, error)
  const intent = status === 200 ? readIntent(confirmed) : await retrieve(api, request.handle, signal)
  const verdict = await conclude(api, intent, request, signal)
  if (verdict.outcome !== 'unconfirmed') return verdict
  return { outcome: 'unknown', why: responseError(status, error).message }
}

/** Looks up the payment by its handle. Without a handle no confirmation was sent, so nothing can be found. */
export async function lookUp(
  api: AirwallexApi,
  reference: Reference,
  signal: AbortSignal,
): Promise<Verdict | NotFound> {
  if (reference.handle === null) return { outcome: 'not_found' }
  return conclude(api, await retrieve(api, reference.handle, signal), reference, signal)
}

/** Cancels the payment, or returns what it has already become. */
export async function refuse(
  api: AirwallexApi,
  reference: Reference,
  signal: AbortSignal,
): Promise<Settled | Unknown | Refused> {
  if (reference.handle === null) return { outcome: 'refused' }
  const verdict = judge(await cancel(api, reference.handle, reference, signal), reference)
  return verdict.outcome === 'unconfirmed' ? { outcome: 'unknown', why: 'could not be cancelled' } : verdict
}

export async function retrieve(api: AirwallexApi, id: string, signal: AbortSignal): Promise<Intent> {
  const { status, body, error } = await api.get(pathOf(id), {}, signal)
  // Also for one that is not found: payments do not disappear, so the key must belong to another account or mode.
  if (status !== 200) throw responseError(status, error)
  return readIntent(body)
}

async function cancel(api: AirwallexApi, id: string, { key }: Reference, signal: AbortSignal): Promise<Intent> {
  const body = { request_id: idOf(key, `cancel ${Date.now()}`), cancellation_reason: 'abandoned' }
  const { status, body: cancelled, error } = await api.post(pathOf(id, 'cancel'), body, signal)
  if (status === 200) return readIntent(cancelled)
  if (status === 400 || status === 409) return retrieve(api, id, signal)
  throw responseError(status, error)
}

/** Throws unless the payment is cancelled. */
async function cancelForGood(api: AirwallexApi, { id }: Intent, reference: Reference, signal: AbortSignal) {
  const { status } = await cancel(api, id, reference, signal)
  if (status !== 'CANCELLED') throw new ProviderError(`another payment of the key could not be cancelled (${status})`)
}

/** The outcome of a payment. One that failed is cancelled first, so that it can never be confirmed again. */
async function conclude(
  api: AirwallexApi,
  intent: Intent,
  reference: Reference,
  signal: AbortSignal,
): Promise<Verdict> {
  const verdict = judge(intent, reference)
  if (verdict.outcome !== 'failed' || intent.status === 'CANCELLED') return verdict
  const after = await cancel(api, intent.id, reference, signal)
  if (after.status === 'SUCCEEDED') return judge(after, reference)
  if (after.status !== 'CANCELLED') throw new ProviderError(`failed, and could not be cancelled (${after.status})`)
  return verdict
}

/** Maps the state of a payment to the outcome of the charge. */
function judge(intent: Intent, reference: Reference): Verdict {
  // A payment has an attempt from its confirmation on.
  const hasFailed = Object.keys(intent.attempt).length > 0
  switch (intent.status) {
    case 'SUCCEEDED':
      return settled('succeeded', intent, reference)
    case 'CANCELLED':
      return hasFailed ? settled('failed', intent, reference) : { outcome: 'refused' }
    case 'REQUIRES_PAYMENT_METHOD':
      return hasFailed ? settled('failed', intent, reference) : { outcome: 'unconfirmed' }
    case 'REQUIRES_CUSTOMER_ACTION':
      return settled('failed', intent, reference)
    default:
      // `PENDING`, `REQUIRES_CAPTURE`, and states that Airwallex may add.
      return { outcome: 'unknown', why: `the payment is ${intent.status}` }
  }
}

function settled(outcome: Settled['outcome'], intent: Intent, reference: Reference): Settled {
  const { asked, captured, customer, consent } = intent
  const isPartial = outcome === 'succeeded' && captured.amountMinor !== asked.amountMinor
  return {
    ...{ outcome, reference: intent.reference ?? reference.reference },
    ...(outcome === 'succeeded' ? captured : asked),
    ...(isPartial && { askedMinor: asked.amountMinor }),
    details: detailsOf(intent, outcome === 'failed'),
    ...(customer !== null && { providerCustomer: customer }),
    ...(consent !== null && { token: consent }),
  }
}
