// Confirms a prepared PaymentIntent, looks it up by its id, cancels it, or finds it by our key.
import type { NotFound, Prepared, Refused, Settled, Unknown } from '../outcomes.ts'
import type { Card, Reference, Span } from '../provider.ts'
import { fieldsOf } from '../transport.ts'
import { pathOf, responseError, type StripeApi, type StripeResponse } from './api.ts'
import { cancel, conclude, findIntent, judge, retrieve, type Verdict, WITH_CHARGE } from './intents.ts'
import { type Intent, idOf, readIntent } from './objects.ts'
import { prepared } from './prepare.ts'

/** Confirms the payment, which charges the card. If the response leaves the outcome open, looks up the payment once. */
export async function confirm(
  api: StripeApi,
  request: Reference & { handle: string },
  signal: AbortSignal,
): Promise<Settled | Unknown | Refused> {
  const params = { off_session: true, error_on_requires_action: true, ...WITH_CHARGE }
  const response = await api.post(
    pathOf('payment_intents', request.handle, 'confirm'),
    params,
    `${request.key}-confirm`,
    signal,
  )
  const { status, error } = response
  if (status >= 500 || status === 409 || status < 200) throw responseError(status, error)
  const verdict = await conclude(api, await intentAfter(api, request.handle, response, signal), request, signal)
  if (verdict.outcome !== 'unconfirmed') return verdict
  return { outcome: 'unknown', why: responseError(status, error).message }
}

/** The payment after a confirmation: from the response if it contains the payment, else by a look-up. */
async function intentAfter(
  api: StripeApi,
  handle: string,
  { status, body, error }: StripeResponse,
  signal: AbortSignal,
): Promise<Intent> {
  if (status === 200) return readIntent(body)
  if (status === 402 && error['payment_intent']) return readIntent(fieldsOf(error['payment_intent']))
  return retrieve(api, handle, signal)
}

/** Looks up the payment by its handle. Without a handle no confirmation was sent, so nothing can be found. */
export async function lookUp(api: StripeApi, reference: Reference, signal: AbortSignal): Promise<Verdict | NotFound> {
  if (reference.handle === null) return { outcome: 'not_found' }
  return conclude(api, await retrieve(api, reference.handle, signal), reference, signal)
}

/** Cancels the payment, or returns what it has already become. */
export async function refuse(
  api: StripeApi,
  reference: Reference,
  signal: AbortSignal,
): Promise<Settled | Unknown | Refused> {
  if (reference.handle === null) return { outcome: 'refused' }
  const verdict = judge(await cancel(api, reference.handle, signal), reference)
  return verdict.outcome === 'unconfirmed' ? { outcome: 'unknown', why: 'could not be cancelled' } : verdict
}

/** Finds the payment made under our key within a span of time. If there are several, it is the one that charged or may charge. */
export async function findByKey(
  api: StripeApi,
  request: Reference & { cards: readonly Card[] },
  span: Span,
  signal: AbortSignal,
): Promise<Prepared | Settled | NotFound | Unknown> {
  const intent = await findIntent(api, request, await customersOf(api, request.cards, signal), span, signal)
  if (!intent) return { outcome: 'not_found' }
  const verdict = await conclude(api, intent, request, signal)
  if (verdict.outcome === 'unconfirmed') return prepared(intent, null)
  // A cancelled payment can no longer charge, so another may be made.
  return verdict.outcome === 'refused' ? { outcome: 'not_found' } : verdict
}

/** The customers that the cards are attached to. */
async function customersOf(api: StripeApi, cards: readonly Card[], signal: AbortSignal): Promise<string[]> {
  const customers = new Set<string>()
  for (const { token, providerCustomer } of cards) {
    const customer = providerCustomer ?? (await customerIfKnown(api, token, signal))
    if (customer !== null) customers.add(customer)
  }
  return [...customers]
}

async function customerIfKnown(api: StripeApi, token: string, signal: AbortSignal): Promise<string | null> {
  const { status, body, error } = await api.get(pathOf('payment_methods', token), {}, signal)
  if (status === 404) return null
  if (status !== 200) throw responseError(status, error)
  return idOf(body['customer'])
}
