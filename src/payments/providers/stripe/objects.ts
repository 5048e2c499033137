// Parses Stripe's objects. An unexpected form throws a `ProviderError`.
import type { Sum } from '../outcomes.ts'
import { ProviderError } from '../provider.ts'
import { fieldsOf, textOf } from '../transport.ts'
import type { Fields } from './api.ts'
import { fromStripeAmount } from './money.ts'

export interface Intent {
  id: string
  status: string
  /** The requested and the charged amount. */
  asked: Sum
  received: Sum
  /** From the metadata that Tundish sets; null for payments made by others. */
  key: string | null
  reference: string | null
  customer: string | null
  card: string | null
  /** RFC 3339. */
  createdAt: string
  lastError: Fields | null
  /** The latest charge if it was expanded, else {}. */
  charge: Fields
}

export function readIntent(body: Fields): Intent {
  const { id, object, status, metadata, last_payment_error, latest_charge } = body
  if (object !== 'payment_intent' || typeof id !== 'string' || typeof status !== 'string') {
    throw new ProviderError('returned an object that is not a payment')
  }
  const meta = fieldsOf(metadata)
  return {
    id,
    status,
    asked: readSum(body, 'amount'),
    received: readSum(body, 'amount_received'),
    key: textOf(meta['tundish_key']),
    reference: textOf(meta['tundish_order']),
    customer: idOf(body['customer']),
    card: idOf(body['payment_method']) ?? idOf(fieldsOf(last_payment_error)['payment_method']),
    createdAt: readTime(body['created']),
    lastError: last_payment_error === null || last_payment_error === undefined ? null : fieldsOf(last_payment_error),
    charge: fieldsOf(latest_charge),
  }
}

export function readSum(body: Fields, field: string): Sum {
  const [amount, currency] = [body[field], body['currency']]
  if (!Number.isSafeInteger(amount) || typeof currency !== 'string') {
    throw new ProviderError(`returned no ${field} and currency`)
  }
  const currencyCode = currency.toUpperCase()
  const amountMinor = fromStripeAmount(BigInt(amount as number), currencyCode)
  if (amountMinor === undefined)
    throw new ProviderError(`returned ${amount} ${currencyCode}, which cannot be converted`)
  return { amountMinor, currencyCode }
}

/** Seconds since 1970 as RFC 3339. */
export function readTime(value: unknown): string {
  if (!Number.isSafeInteger(value)) throw new ProviderError('returned no time')
  return new Date((value as number) * 1000).toISOString().replace('Z', '000Z')
}

/** The id of an object that may have been expanded. */
export function idOf(value: unknown): string | null {
  return textOf(typeof value === 'object' ? fieldsOf(value)['id'] : value)
}
