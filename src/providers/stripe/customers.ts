// Customers at Stripe: looks up a saved card, and erases a customer's personal data.
import { fieldsOf } from '../transport.ts'
import { pathOf, responseError, type StripeApi } from './api.ts'
import { idOf, textOf } from './objects.ts'

/** A card that is saved at Stripe. */
export interface SavedCard {
  /** The customer that it is attached to; null if it was detached or never saved. */
  customer: string | null
  last4: string | null
  network: string | null
  /** `12/2034`. */
  expirationDate: string | null
}

/** Looks up a saved card; undefined if the account has no such card. */
export async function savedCard(api: StripeApi, token: string, signal: AbortSignal): Promise<SavedCard | undefined> {
  const { status, body, error } = await api.get(pathOf('payment_methods', token), {}, signal)
  if (status === 404) return undefined
  if (status !== 200) throw responseError(status, error)
  const { brand, last4, exp_month, exp_year } = fieldsOf(body['card'])
  return {
    customer: idOf(body['customer']),
    last4: textOf(last4),
    network: textOf(brand),
    expirationDate: exp_month && exp_year ? `${String(exp_month).padStart(2, '0')}/${exp_year}` : null,
  }
}

/**
 * Detaches every card of a customer, then clears name, e-mail, phone and addresses, or deletes the customer. Repeating it
 * changes nothing. A customer that no longer exists counts as erased.
 */
export async function eraseCustomer(
  api: StripeApi,
  customer: string,
  how: 'empty' | 'delete',
  signal: AbortSignal,
): Promise<{ outcome: 'erased' }> {
  if (await isGone(api, customer, signal)) return { outcome: 'erased' }
  await detachCards(api, customer, signal)
  const path = pathOf('customers', customer)
  const empty = { name: '', email: '', phone: '', description: '', address: '', shipping: '' }
  const response = how === 'delete' ? await api.delete(path, signal) : await api.post(path, empty, undefined, signal)
  // 404: another worker, or a user of Stripe's dashboard, has deleted it meanwhile.
  if (response.status !== 200 && response.status !== 404) throw responseError(response.status, response.error)
  return { outcome: 'erased' }
}

async function isGone(api: StripeApi, customer: string, signal: AbortSignal): Promise<boolean> {
  const { status, body, error } = await api.get(pathOf('customers', customer), {}, signal)
  if (status === 404) return true
  if (status !== 200) throw responseError(status, error)
  return body['deleted'] === true
}

async function detachCards(api: StripeApi, customer: string, signal: AbortSignal): Promise<void> {
  const tokens: string[] = []
  for await (const { id } of api.all(pathOf('customers', customer, 'payment_methods'), {}, signal))
    tokens.push(String(id))
  for (const token of tokens) {
    const { status, error } = await api.post(pathOf('payment_methods', token, 'detach'), {}, undefined, signal)
    // 400: it has been detached meanwhile.
    if (status !== 200 && status !== 400) throw responseError(status, error)
  }
}
