// Creates a payment at Stripe, unconfirmed, so that no money can move yet.
import {
  type ChargeRequest,
  type Conflict,
  type NotBegun,
  noDetails,
  type Prepared,
  type Settled,
  type Unknown,
} from '../provider.ts'
import { onceAnswered, pathOf, type StripeAnswer, type StripeApi, trouble, turnedAway } from './api.ts'
import { reasonOfError } from './details.ts'
import { conclude, findIntent } from './intents.ts'
import { toStripeAmount } from './money.ts'
import { type Intent, idOf, readIntent } from './objects.ts'

// Stripe keeps idempotency keys for at least 24 hours; how much longer it does not say.
const KEY_MAY_LIVE_MS = 72 * 3_600_000

/** Creates the PaymentIntent. Rejections that repeating cannot change are `failed`. */
export async function prepare(
  api: StripeApi,
  request: ChargeRequest,
  signal: AbortSignal,
): Promise<Prepared | Settled | NotBegun | Unknown | Conflict> {
  const found = request.providerCustomer === null ? await customerOfCard(api, request, signal) : null
  if (found && 'outcome' in found) return found
  const customer = request.providerCustomer ?? found?.customer ?? null
  const answer = await create(api, request, customer, signal)
  if (answer.status === 200) return prepared(readIntent(answer.body), customer)
  if (answer.error['type'] === 'idempotency_error' && answer.status === 400) {
    return onceAnswered(() => findWithinKeyLife(api, request, customer, signal))
  }
  return turnedAwayOrRejected(request, answer)
}

function create(
  api: StripeApi,
  request: ChargeRequest,
  customer: string | null,
  signal: AbortSignal,
): Promise<StripeAnswer> {
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

/** The customer that the saved card is attached to: Stripe charges an attached card with its customer only. */
async function customerOfCard(
  api: StripeApi,
  request: ChargeRequest,
  signal: AbortSignal,
): Promise<{ customer: string | null } | Settled | NotBegun> {
  const answer = await api.get(pathOf('payment_methods', request.token), {}, signal)
  if (answer.status === 200) return { customer: idOf(answer.body['customer']) }
  return turnedAwayOrRejected(request, answer)
}

/**
 * The key was used with other parameters: a retry with a new order after the old one was lost, which is the same purchase,
 * or another amount, which is not.
 */
async function findWithinKeyLife(
  api: StripeApi,
  request: ChargeRequest,
  customer: string | null,
  signal: AbortSignal,
): Promise<Prepared | Settled | Unknown | Conflict> {
  const since = new Date(Date.now() - KEY_MAY_LIVE_MS).toISOString()
  const intent = await findIntent(api, request.key, customer, since, signal)
  // An error is kept under a key, too: the first call created nothing.
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

/** An answer to a call that can move no money, and did nothing. */
function turnedAwayOrRejected(request: ChargeRequest, { status, error }: StripeAnswer): Settled | NotBegun {
  const cause = turnedAway(status)
  if (cause) return { outcome: 'not_begun', why: trouble(status, error).message, cause }
  if (status < 400 || status >= 500 || status === 409) throw trouble(status, error)
  const { reference, amountMinor, currencyCode } = request
  const details = { ...noDetails, psp_transaction_type: 'sale', psp_status: 'rejected', ...reasonOfError(error) }
  return { outcome: 'failed', reference, amountMinor, currencyCode, details }
}
