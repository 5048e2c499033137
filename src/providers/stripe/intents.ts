// PaymentIntents made by Tundish: look up, cancel, find by key, and the meaning of their states for a charge.
import {
  ProviderTrouble,
  type Reference,
  type Refused,
  type Settled,
  type Unconfirmed,
  type Unknown,
} from '../provider.ts'
import { fieldsOf } from '../transport.ts'
import { pathOf, type StripeApi, trouble } from './api.ts'
import { detailsOf } from './details.ts'
import { type Intent, readIntent } from './objects.ts'

export type Verdict = Settled | Unknown | Refused | Unconfirmed

export const WITH_CHARGE = { expand: ['latest_charge'] }

/** The payment made under a key since an instant; of several the one that charged or may have, else one that failed. */
export async function findIntent(
  api: StripeApi,
  key: string,
  customer: string | null,
  since: string,
  signal: AbortSignal,
): Promise<Intent | undefined> {
  const created = { gte: Math.floor(Date.parse(since) / 1000) }
  const params = { customer: customer ?? undefined, created, expand: ['data.latest_charge'] }
  let best: Intent | undefined
  for await (const item of api.all('/v1/payment_intents', params, signal)) {
    if (fieldsOf(item['metadata'])['tundish_key'] !== key) continue
    const intent = readIntent(item)
    if (!best || weight(intent) > weight(best)) best = intent
  }
  return best
}

/** The relevance of a payment for its key: after a lost response there may be further unconfirmed ones. */
function weight(intent: Intent): number {
  if (intent.status === 'succeeded' || intent.status === 'processing') return 3
  if (hasFailed(intent)) return 2
  return intent.status === 'canceled' ? 0 : 1
}

export async function retrieve(api: StripeApi, handle: string, signal: AbortSignal): Promise<Intent> {
  const { status, body, error } = await api.get(pathOf('payment_intents', handle), WITH_CHARGE, signal)
  // Also for 404: a payment cannot vanish, so the key belongs to another account or mode.
  if (status !== 200) throw trouble(status, error)
  return readIntent(body)
}

export async function cancel(api: StripeApi, handle: string, signal: AbortSignal): Promise<Intent> {
  const params = { cancellation_reason: 'abandoned', ...WITH_CHARGE }
  const { status, body, error } = await api.post(pathOf('payment_intents', handle, 'cancel'), params, undefined, signal)
  if (status === 200) return readIntent(body)
  if (error['code'] === 'payment_intent_unexpected_state') return retrieve(api, handle, signal)
  throw trouble(status, error)
}

/** The verdict on a payment. One that failed is cancelled first, so that it can never be confirmed again. */
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
    throw new ProviderTrouble(`failed, and could not be cancelled (${after.status})`)
  }
  return judge({ ...after, lastError: after.lastError ?? intent.lastError ?? verdictError(verdict) }, reference)
}

/** A payment that waited for authentication has no error. */
function verdictError({ details }: Settled): Record<string, unknown> {
  return { code: details.psp_reason_code, message: details.psp_reason_message, type: details.psp_reason_type }
}

/** The outcome of a charge whose payment is in this state. */
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
      // `processing`, `requires_capture`, and what Stripe may add.
      return { outcome: 'unknown', why: `the payment is ${intent.status}` }
  }
}

function hasFailed({ lastError, charge }: Intent): boolean {
  return lastError !== null || charge['status'] === 'failed'
}

function settled(outcome: Settled['outcome'], intent: Intent, reference: Reference): Settled {
  const isPartial = outcome === 'succeeded' && intent.received.amountMinor !== intent.asked.amountMinor
  return {
    outcome,
    // A person may have emptied the metadata; the handle is ours all the same.
    reference: intent.reference ?? reference.reference,
    ...(outcome === 'succeeded' ? intent.received : intent.asked),
    ...(isPartial && { askedMinor: intent.asked.amountMinor }),
    details: detailsOf(intent),
    ...(intent.customer !== null && { providerCustomer: intent.customer }),
  }
}
