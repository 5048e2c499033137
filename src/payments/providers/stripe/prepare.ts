// Creates a PaymentIntent without confirming it, so that no money moves yet.
import type { Conflict, NotBegun, Prepared, Settled, Unknown } from '../outcomes.ts'
import { type ChargeRequest, noDetails } from '../provider.ts'
import { afterFirstResponse, causeOfRejection } from '../transport.ts'
import { pathOf, responseError, type StripeApi, type StripeResponse } from './api.ts'
import { reasonOfError } from './details.ts'
import { conclude, findIntent } from './intents.ts'
import { toStripeAmount } from './money.ts'
import { type Intent, idOf, readIntent } from './objects.ts'

// Stripe guarantees 24 hours for an idempotency key and may keep it longer. Payments of this period are searched.
const KEY_MAY_LIVE_MS = 72 * 3_600_000

/** Creates the PaymentIntent. The outcome is `failed` if Stripe rejects it for a reason that a retry cannot change. */
export async function prepare(
  api: StripeApi,
  request: ChargeRequest,
  signal: AbortSignal,
): Promise<Prepared | Settled | NotBegun | Unknown | Conflict> {
  const found = request.providerCustomer === null ? await customerOfCard(api, request, signal) : null
  if (found && 'outcome' in found) return found
  const customer = request.providerCustomer ?? found?.customer ?? null
  const response = await create(api, request, customer, signal)
  if (response.status === 200) return prepared(readIntent(response.body), customer)
  if (response.error['type'] === 'idempotency_error' && response.status === 400) {
    return afterFirstResponse(() => findWithinKeyLife(api, request, customer, signal))
  }
  return notBegunOrRejected(request, response)
}

function create(
  api: StripeApi,
  request: ChargeRequest,
  customer: string | null,
  signal: AbortSignal,
): Promise<StripeResponse> {
  const amount = toStripeAmount(request.amountMinor, request.currencyCode)
  if (amount === undefined) throw new Error('Bug: the amount was not checked with `accepts`.')
  const params = {
    amount: String(amount),
    currency: request.currencyCode.toLowerCase(),
    customer: customer ?? undefined,
    payment_method: request.token,
    payment_method_types: ['card'],
    metadata: { tundish_order: request.reference, tundish_key: request.key },
  }
  return api.post('/v1/payment_intents', params, request.key, signal)
}

/** The customer that the saved card is attached to. Stripe charges an attached card only together with its customer. */
async function customerOfCard(
  api: StripeApi,
  request: ChargeRequest,
  signal: AbortSignal,
): Promise<{ customer: string | null } | Settled | NotBegun> {
  const response = await api.get(pathOf('payment_methods', request.token), {}, signal)
  if (response.status === 200) return { customer: idOf(response.body['customer']) }
  return notBegunOrRejected(request, response)
}

/**
 * Finds the payment of a key that was used before with other parameters. The same amount with another order id is a retry
 * after a restored backup lost the order; another amount is a conflict. The lost order may have charged a card of another
 * customer of Stripe's.
 */
async function findWithinKeyLife(
  api: StripeApi,
  request: ChargeRequest,
  customer: string | null,
  signal: AbortSignal,
): Promise<Prepared | Settled | Unknown | Conflict> {
  const since = new Date(Date.now() - KEY_MAY_LIVE_MS).toISOString()
  const find = (customers: string[]) => findIntent(api, request, customers, { since }, signal)
  const intent = (customer === null ? undefined : await find([customer])) ?? (await find([]))
  // Stripe stores errors under a key, too: the first call failed and created nothing.
  if (!intent) return { outcome: 'unknown', why: 'the key was used for a call that failed' }
  const { amountMinor, currencyCode } = intent.asked
  if (amountMinor !== request.amountMinor || currencyCode !== request.currencyCode) return { outcome: 'conflict' }
  const verdict = await conclude(api, intent, request, signal)
  return verdict.outcome === 'succeeded' || verdict.outcome === 'failed' ? verdict : prepared(intent, customer)
}

export function prepared(intent: Intent, customer: string | null): Prepared {
  const known = intent.customer ?? customer
  return { outcome: 'prepared', handle: intent.id, ...(known !== null && { providerCustomer: known }) }
}

/** The outcome of an error response. No money can have moved, because nothing was confirmed. */
function notBegunOrRejected(request: ChargeRequest, { status, error }: StripeResponse): Settled | NotBegun {
  const cause = causeOfRejection(status)
  if (cause) return { outcome: 'not_begun', why: responseError(status, error).message, cause }
  if (status < 400 || status >= 500 || status === 409) throw responseError(status, error)
  const { reference, amountMinor, currencyCode } = request
  const details = { ...noDetails, psp_transaction_type: 'sale', psp_status: 'rejected', ...reasonOfError(error) }
  return { outcome: 'failed', reference, amountMinor, currencyCode, details }
}
