// PaymentIntents made by Tundish: retrieves, cancels and finds them, and maps their states to outcomes of a charge.
import type { Refused, Settled, Unconfirmed, Unknown } from '../outcomes.ts'
import { ProviderError, type Reference, type Span } from '../provider.ts'
import { fieldsOf } from '../transport.ts'
import { pathOf, responseError, type StripeApi } from './api.ts'
import { detailsOf } from './details.ts'
import { type Intent, readIntent } from './objects.ts'

export type Verdict = Settled | Unknown | Refused | Unconfirmed

export const WITH_CHARGE = { expand: ['latest_charge'] }

/**
 * Finds the payment made under a key within a span of time: of these customers, or of the whole account if there are none. Of several
 * it prefers one that charged or may charge, then one that failed, and cancels the others, so that none of them can charge later.
 */
export async function findIntent(
  api: StripeApi,
  reference: Reference,
  customers: readonly string[],
  { since, until }: Span,
  signal: AbortSignal,
): Promise<Intent | undefined> {
  const created = { gte: secondsOf(since), ...(until !== undefined && { lte: secondsOf(until) }) }
  const found: { intent: Intent; outcome: Verdict['outcome'] }[] = []
  for (const customer of customers.length > 0 ? customers : [undefined]) {
    const params = { customer, created, expand: ['data.latest_charge'] }
    for await (const item of api.all('/v1/payment_intents', params, signal)) {
      if (fieldsOf(item['metadata'])['tundish_key'] !== reference.key) continue
      const intent = readIntent(item)
      found.push({ intent, outcome: judge(intent, reference).outcome })
    }
  }
  const [best, ...others] = found.sort((one, other) => RANK[one.outcome] - RANK[other.outcome])
  for (const { intent, outcome } of others)
    if (intent.status !== 'canceled' && (outcome === 'failed' || outcome === 'unconfirmed'))
      await cancelForGood(api, intent, signal)
  return best?.intent
}

const secondsOf = (instant: string) => Math.floor(Date.parse(instant) / 1000)

// Ranks the payments of one key. There may be several, because a prepare whose response was lost is repeated.
const RANK: Record<Verdict['outcome'], number> = { succeeded: 0, unknown: 1, failed: 2, unconfirmed: 3, refused: 4 }

export async function retrieve(api: StripeApi, handle: string, signal: AbortSignal): Promise<Intent> {
  const { status, body, error } = await api.get(pathOf('payment_intents', handle), WITH_CHARGE, signal)
  // A 404 is an error too: payments do not disappear, so the secret key must belong to another account or mode.
  if (status !== 200) throw responseError(status, error)
  return readIntent(body)
}

export async function cancel(api: StripeApi, handle: string, signal: AbortSignal): Promise<Intent> {
  const params = { cancellation_reason: 'abandoned', ...WITH_CHARGE }
  const { status, body, error } = await api.post(pathOf('payment_intents', handle, 'cancel'), params, undefined, signal)
  if (status === 200) return readIntent(body)
  if (error['code'] === 'payment_intent_unexpected_state') return retrieve(api, handle, signal)
  throw responseError(status, error)
}

/** Throws unless the payment is cancelled. */
async function cancelForGood(api: StripeApi, { id }: Intent, signal: AbortSignal): Promise<void> {
  const { status } = await cancel(api, id, signal)
  if (status !== 'canceled') throw new ProviderError(`another payment of the key could not be cancelled (${status})`)
}

/** The outcome of a payment. A failed payment is cancelled first, so that it can never be confirmed later. */
export async function conclude(
  api: StripeApi,
  intent: Intent,
  reference: Reference,
  signal: AbortSignal,
): Promise<Verdict> {
  const verdict = judge(intent, reference)
  if (verdict.outcome !== 'failed' || intent.status === 'canceled') return verdict
  const after = await cancel(api, intent.id, signal)
  if (after.status !== 'canceled') {
    const changed = judge(after, reference)
    if (changed.outcome === 'succeeded') return changed
    throw new ProviderError(`failed, and could not be cancelled (${after.status})`)
  }
  return judge({ ...after, lastError: after.lastError ?? intent.lastError ?? verdictError(verdict) }, reference)
}

/** The error of a payment that waited for authentication, because Stripe stores none for it. */
function verdictError({ details }: Settled): Record<string, unknown> {
  return { code: details.psp_reason_code, message: details.psp_reason_message, type: details.psp_reason_type }
}

/** Maps the state of a payment to the outcome of the charge. */
export function judge(intent: Intent, reference: Reference): Verdict {
  switch (intent.status) {
    case 'succeeded':
      return settled('succeeded', intent, reference)
    case 'canceled':
      return hasFailed(intent) ? settled('failed', intent, reference) : { outcome: 'refused' }
    case 'requires_payment_method':
      return hasFailed(intent) ? settled('failed', intent, reference) : { outcome: 'unconfirmed' }
    case 'requires_action':
      return settled('failed', intent, reference)
    case 'requires_confirmation':
      return { outcome: 'unconfirmed' }
    default:
      // `processing`, `requires_capture`, and states that Stripe may add.
      return { outcome: 'unknown', why: `the payment is ${intent.status}` }
  }
}

export function hasFailed({ lastError, charge }: Intent): boolean {
  return lastError !== null || charge['status'] === 'failed'
}

function settled(outcome: Settled['outcome'], intent: Intent, reference: Reference): Settled {
  const isPartial = outcome === 'succeeded' && intent.received.amountMinor !== intent.asked.amountMinor
  return {
    outcome,
    // A user of Stripe's dashboard may have cleared the metadata; the handle still identifies our order.
    reference: intent.reference ?? reference.reference,
    ...(outcome === 'succeeded' ? intent.received : intent.asked),
    ...(isPartial && { askedMinor: intent.asked.amountMinor }),
    details: detailsOf(intent),
    ...(intent.customer !== null && { providerCustomer: intent.customer }),
    ...(intent.card !== null && { token: intent.card }),
  }
}
