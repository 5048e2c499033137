// Charges a vaulted token at Primer, captures what is authorized, looks payments up, and cancels them.
import type { Authorized, NotBegun, NotFound, Pending, Refused, Settled, Unknown, Withheld } from '../outcomes.ts'
import { type ChargeRequest, noDetails, ProviderError, type Reference } from '../provider.ts'
import { afterFirstResponse, causeOfRejection, textOf } from '../transport.ts'
import { isKeyKnown, type PrimerApi, type PrimerResponse, paymentPath, responseError } from './api.ts'
import { AUTHENTICATION_REQUIRED, attemptsOf, detailsOf, isCit, reasonOfError } from './details.ts'
import { type Payment, readPayment } from './objects.ts'

export type Verdict = Settled | Authorized | Pending | Unknown | Refused

// A payment that has been waiting for its processor for longer is looked at in growing pauses.
const SOON_MS = 10 * 60_000

/**
 * Creates the payment, which authorizes it, and captures it if the account's workflow does so. Its `orderId` is our key and not our
 * id of the order: so a payment is found by its key even when Primer withholds the result and the order was lost here.
 */
export async function charge(
  api: PrimerApi,
  request: ChargeRequest,
  signal: AbortSignal,
): Promise<Verdict | NotBegun | Withheld> {
  const { key, reference, amountMinor, currencyCode, token, providerCustomer } = request
  const body = {
    orderId: key,
    amount: Number(amountMinor),
    currencyCode,
    paymentMethodToken: token,
    ...(providerCustomer !== null && { customerId: providerCustomer }),
    metadata: { tundish_order: reference, tundish_key: key },
    // A charge without the customer, with no fixed schedule or amount.
    paymentMethod: { paymentType: 'UNSCHEDULED' },
  }
  const response = await api.post('/payments', body, key, signal)
  if (response.status === 200)
    return afterFirstResponse(() => conclude(api, readPayment(response.body), request, signal))
  if (isKeyKnown(response) || response.status === 409) return withheld(response)
  return notBegunOrRejected(request, response)
}

export function withheld({ error }: PrimerResponse): Withheld {
  const handle = textOf(error['paymentId'])
  return { outcome: 'withheld', ...(handle !== null && { handle }) }
}

// Errors of the request itself. Any other 400, such as `PaymentError`, may come from a processor that was asked.
const REJECTED =
  /^(RequestValidationError|MetadataContainsEmptyKey|InvalidPaymentInstrumentToken|ClientSessionValidationError)$/

/** The outcome of an error response to the creation of a payment. Throws where it leaves open whether money moved. */
function notBegunOrRejected(request: ChargeRequest, { status, error }: PrimerResponse): Settled | NotBegun {
  const cause = causeOfRejection(status)
  if (cause) return { outcome: 'not_begun', why: responseError(status, error).message, cause }
  const isRejected = status === 422 || (status === 400 && REJECTED.test(String(error['errorId'])))
  if (!isRejected) throw responseError(status, error)
  const { reference, amountMinor, currencyCode } = request
  const details = { ...noDetails, psp_transaction_type: 'sale', psp_status: 'REJECTED', ...reasonOfError(error) }
  return { outcome: 'failed', reference, amountMinor, currencyCode, details }
}

/** Captures the whole amount. After any error the payment itself says what it has become. */
export async function capture(
  api: PrimerApi,
  request: Reference & { handle: string },
  signal: AbortSignal,
): Promise<Verdict> {
  const response = await api.post(
    paymentPath(request.handle, 'capture'),
    { final: true },
    `${request.key}-capture`,
    signal,
  )
  if (response.status === 200) return judge(readPayment(response.body), request)
  const { status, error } = response
  if (causeOfRejection(status) || status >= 500 || status < 400) throw responseError(status, error)
  return conclude(api, await retrieve(api, request.handle, signal), request, signal)
}

/** Looks up the payment by its id, or else by our key in the list, in which a new payment may be missing for a minute. */
export async function lookUp(api: PrimerApi, reference: Reference, signal: AbortSignal): Promise<Verdict | NotFound> {
  const payment = await find(api, reference, signal)
  return payment ? conclude(api, payment, reference, signal) : { outcome: 'not_found' }
}

/** Cancels the payment, or returns what it has already become. What the list does not have cannot be cancelled. */
export async function refuse(
  api: PrimerApi,
  reference: Reference,
  signal: AbortSignal,
): Promise<Settled | Pending | Unknown | Refused> {
  const payment = await find(api, reference, signal)
  if (!payment) return { outcome: 'unknown', why: 'the payment is not listed, so it cannot be cancelled' }
  const verdict = judge(payment, reference)
  if (verdict.outcome === 'succeeded' || verdict.outcome === 'failed' || verdict.outcome === 'refused') return verdict
  const after = judge(await cancel(api, payment.id, 'abandoned', signal), reference)
  return after.outcome === 'authorized' ? { outcome: 'unknown', why: 'the payment could not be cancelled' } : after
}

async function find(api: PrimerApi, { handle, key }: Reference, signal: AbortSignal): Promise<Payment | undefined> {
  if (handle !== null) return retrieve(api, handle, signal)
  const found: Payment[] = []
  let cursor: string | undefined
  do {
    const { items, next } = await api.page({ order_id: key, cursor }, signal)
    // A filter may return payments that are only related to this id, such as by a refund.
    for (const { id, orderId } of items)
      if (orderId === key && typeof id === 'string') found.push(await retrieve(api, id, signal))
    cursor = next
  } while (cursor !== undefined)
  return found.sort((one, other) => rankOf(one) - rankOf(other))[0]
}

/** Of several payments under one key, the one that moved money or still may. */
function rankOf({ status }: Payment): number {
  if (status === 'SETTLED' || status === 'PARTIALLY_SETTLED') return 0
  return status === 'DECLINED' || status === 'FAILED' ? 2 : status === 'CANCELLED' ? 3 : 1
}

export async function retrieve(api: PrimerApi, id: string, signal: AbortSignal): Promise<Payment> {
  const { status, body, error } = await api.get(paymentPath(id), {}, signal)
  // Also for one that is not found: payments do not disappear, so the key must belong to another account or mode.
  if (status !== 200) throw responseError(status, error)
  return readPayment(body)
}

async function cancel(api: PrimerApi, id: string, reason: string, signal: AbortSignal): Promise<Payment> {
  const { status, body, error } = await api.post(paymentPath(id, 'cancel'), { reason }, undefined, signal)
  if (status === 200) return readPayment(body)
  if (status === 400 || status === 409 || status === 422) return retrieve(api, id, signal)
  throw responseError(status, error)
}

/**
 * The outcome of a payment. One that waits for the customer, or whose processor did not respond in time, is cancelled first, so that
 * it can never be charged later.
 */
async function conclude(api: PrimerApi, payment: Payment, reference: Reference, signal: AbortSignal): Promise<Verdict> {
  const open = openReason(payment)
  if (open === undefined) return judge(payment, reference)
  const after = await cancel(api, payment.id, open, signal)
  if (after.status !== 'CANCELLED' || hasMoved(after)) return judge(after, reference)
  const { statusReason, needsAction } = payment
  return settled('failed', { ...after, statusReason: after.statusReason ?? statusReason, needsAction }, reference)
}

/** Why a payment that is not decided has to be cancelled; undefined if it has not. */
function openReason(payment: Payment): string | undefined {
  if (hasMoved(payment)) return undefined
  if (payment.status === 'PENDING' && payment.needsAction) return AUTHENTICATION_REQUIRED
  return payment.status === 'FAILED' && isUncertain(payment) ? 'UNCERTAIN' : undefined
}

// A processor that did not respond in time, or an error between Primer and it, may have charged all the same.
const CERTAIN = new Set<unknown>(['GATEWAY_REJECTED', 'ISSUER_DECLINED'])
// An attempt in these states has moved money, or may yet.
const MAY_MOVE = new Set(['PENDING', 'AUTHORIZED', 'SETTLING', 'SETTLED', 'PARTIALLY_SETTLED'])

const hasMoved = ({ sales }: Payment) => sales.some(({ status }) => MAY_MOVE.has(status) && status !== 'PENDING')

const isUncertain = ({ statusReason, sales }: Payment) =>
  !CERTAIN.has(statusReason?.['type'] ?? sales.at(-1)?.statusReason?.['type'])

/** Maps the state of a payment to the outcome of the charge. */
function judge(payment: Payment, reference: Reference): Verdict {
  const { id, status, sales } = payment
  switch (status) {
    case 'SETTLED':
    case 'PARTIALLY_SETTLED':
      return settled('succeeded', payment, reference)
    case 'AUTHORIZED':
      return { outcome: 'authorized', handle: id }
    case 'SETTLING':
      return { outcome: 'pending', why: 'the payment is SETTLING', transactionId: id }
    case 'PENDING':
      return isOld(payment)
        ? { outcome: 'pending', why: 'the payment is PENDING', transactionId: id }
        : { outcome: 'unknown', why: 'the payment is PENDING' }
    case 'DECLINED':
    case 'FAILED':
    case 'CANCELLED': {
      const open = sales.find((sale) => MAY_MOVE.has(sale.status))
      if (open) return { outcome: 'unknown', why: `the payment is ${status}, and an attempt is ${open.status}` }
      if (status === 'FAILED' && isUncertain(payment))
        return { outcome: 'unknown', why: 'the processor did not respond' }
      if (status === 'CANCELLED' && !hasFailed(payment)) return { outcome: 'refused' }
      return settled('failed', payment, reference)
    }
    default:
      return { outcome: 'unknown', why: `the payment is ${status.slice(0, 50)}` }
  }
}

const isOld = ({ date }: Payment) => date !== null && Date.now() - Date.parse(date) > SOON_MS

const hasFailed = ({ statusReason, sales }: Payment) =>
  statusReason !== null || sales.some(({ reason }) => reason === AUTHENTICATION_REQUIRED || reason === 'UNCERTAIN')

function settled(outcome: Settled['outcome'], payment: Payment, reference: Reference): Settled {
  const { asked, customer, token } = payment
  const amountMinor = outcome === 'succeeded' ? charged(payment) : asked.amountMinor
  const { failedAttempts, isFallback } = attemptsOf(payment)
  const cit = isCit(payment)
  return {
    outcome,
    // A payment without our metadata that has our key as its `orderId` is ours.
    reference: payment.reference ?? reference.reference,
    amountMinor,
    currencyCode: asked.currencyCode,
    ...(amountMinor !== asked.amountMinor && { askedMinor: asked.amountMinor }),
    details: detailsOf(payment, outcome === 'failed'),
    ...(customer !== null && { providerCustomer: customer }),
    ...(token !== null && { token }),
    ...(cit !== undefined && { isCit: cit }),
    ...(isFallback && { isFallback }),
    ...(failedAttempts.length > 0 && { failedAttempts }),
  }
}

/** What was captured. `SETTLED` without a sum of captures means the whole amount. */
export function charged({ status, asked, capturedMinor }: Payment): bigint {
  const amountMinor = capturedMinor || (status === 'SETTLED' ? asked.amountMinor : 0n)
  if (amountMinor <= 0n) throw new ProviderError(`returned a payment that is ${status} without an amount`)
  return amountMinor
}
