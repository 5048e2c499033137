// Customers at Stripe: looks up a saved card, and erases a customer's personal data.
import type { SavedCard } from '../outcomes.ts'
import { fieldsOf, textOf } from '../transport.ts'
import { pathOf, responseError, type StripeApi } from './api.ts'
import { idOf } from './objects.ts'

/** Looks up a saved card; undefined if the account has no such card. */
export async function savedCard(api: StripeApi, token: string, signal: AbortSignal): Promise<SavedCard | undefined> {
  const { status, body, error } = await api.get(pathOf('payment_methods', token), {}, signal)
  if (status === 404) return undefined
  if (status !== 200) throw responseError(status, error)
  const { brand, last4, exp_month, exp_year } = fieldsOf(body['card'])
  return {
    // A card that is saved for an Account, which may be a customer too, is not detached.
    customer: idOf(body['customer']) ?? textOf(body['customer_account']),
    last4: textOf(last4),
    network: textOf(brand),
    expirationDate: exp_month && exp_year ? `${String(exp_month).padStart(2, '0')}/${exp_year}` : null,
  }
}

/** The customer of a charge or PaymentIntent; undefined if the account has no such payment. */
export async function payerOf(
  api: StripeApi,
  transactionId: string,
  signal: AbortSignal,
): Promise<{ customer: string | null } | undefined> {
  const collection = transactionId.startsWith('pi_') ? 'payment_intents' : 'charges'
  const { status, body, error } = await api.get(pathOf(collection, transactionId), {}, signal)
  if (status === 404) return undefined
  if (status !== 200) throw responseError(status, error)
  return { customer: idOf(body['customer']) }
}

/**
 * Clears name, e-mail, phone and addresses of a customer, or deletes the customer; then detaches every card, and `card` last.
 * Repeating it changes nothing. A customer that no longer exists counts as erased.
 */
export async function eraseCustomer(
  api: StripeApi,
  customer: string,
  how: 'empty' | 'delete',
  signal: AbortSignal,
  card?: string,
): Promise<{ outcome: 'erased' }> {
  if (await isGone(api, customer, signal)) return { outcome: 'erased' }
  const cards = await cardsOf(api, customer, signal)
  const path = pathOf('customers', customer)
  const empty = { name: '', email: '', phone: '', description: '', address: '', shipping: '' }
  const response = how === 'delete' ? await api.delete(path, signal) : await api.post(path, empty, undefined, signal)
  // 404: another worker, or a user of Stripe's dashboard, has deleted it since.
  if (response.status !== 200 && response.status !== 404) throw responseError(response.status, response.error)
  // The cards after the customer, and the known card last: a card that is detached no longer names its customer.
  const isKnown = (token: string) => token === card
  for (const token of [...cards.filter((one) => !isKnown(one)), ...cards.filter(isKnown)])
    await detach(api, token, signal)
  return { outcome: 'erased' }
}

async function isGone(api: StripeApi, customer: string, signal: AbortSignal): Promise<boolean> {
  const { status, body, error } = await api.get(pathOf('customers', customer), {}, signal)
  if (status === 404) return true
  if (status !== 200) throw responseError(status, error)
  return body['deleted'] === true
}

async function cardsOf(api: StripeApi, customer: string, signal: AbortSignal): Promise<string[]> {
  const tokens: string[] = []
  for await (const { id } of api.all(pathOf('customers', customer, 'payment_methods'), {}, signal))
    tokens.push(String(id))
  return tokens
}

async function detach(api: StripeApi, token: string, signal: AbortSignal): Promise<void> {
  const { status, error } = await api.post(pathOf('payment_methods', token, 'detach'), {}, undefined, signal)
  // 400: it has been detached since. 404: it is gone with its customer.
  if (![200, 400, 404].includes(status)) throw responseError(status, error)
}
