// The saved cards of a customer at Primer. Primer stores no customers: a customer is an id that the merchant gives.
import { fieldsOf, textOf } from '../transport.ts'
import { type PrimerApi, paymentPath, responseError } from './api.ts'
import { readPayment } from './objects.ts'

/** The customer of a payment, null if it has none; undefined if the account has no such payment. */
export async function payerOf(
  api: PrimerApi,
  id: string,
  signal: AbortSignal,
): Promise<{ customer: string | null } | undefined> {
  const { status, body, error } = await api.get(paymentPath(id), {}, signal)
  if (status === 404 || status === 400) return undefined
  if (status !== 200) throw responseError(status, error)
  return { customer: readPayment(body).customer }
}

/**
 * Deletes every saved payment method of a customer, `card` last. Repeating it changes nothing. What Primer stores of a customer
 * besides is inside its payments, and its API changes no payment.
 */
export async function eraseCustomer(
  api: PrimerApi,
  customer: string,
  signal: AbortSignal,
  card?: string,
): Promise<{ outcome: 'erased' }> {
  const tokens = await tokensOf(api, customer, signal)
  const others = tokens.filter((token) => token !== card)
  for (const token of card === undefined ? others : [...others, card]) await remove(api, token, signal)
  return { outcome: 'erased' }
}

export async function tokensOf(api: PrimerApi, customer: string, signal: AbortSignal): Promise<string[]> {
  const { status, body, error } = await api.get('/payment-instruments', { customer_id: customer }, signal)
  const { data } = body
  if (status !== 200 || !Array.isArray(data)) throw responseError(status, error)
  return data.map(fieldsOf).flatMap(({ token, deleted }) => (deleted === true ? [] : (textOf(token) ?? [])))
}

/** Deletes a saved payment method. Repeating it changes nothing. */
export async function eraseCard(api: PrimerApi, token: string, signal: AbortSignal): Promise<{ outcome: 'erased' }> {
  await remove(api, token, signal)
  return { outcome: 'erased' }
}

async function remove(api: PrimerApi, token: string, signal: AbortSignal): Promise<void> {
  const { status, error } = await api.delete(`/payment-instruments/${encodeURIComponent(token)}`, signal)
  // The token has been deleted since, or never existed.
  const isGone = status === 404 || (status === 400 && error['errorId'] === 'InvalidPaymentInstrumentToken')
  if (status !== 200 && !isGone) throw responseError(status, error)
}
