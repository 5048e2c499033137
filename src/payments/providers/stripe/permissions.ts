// The permissions of Stripe's restricted keys, by their names in Stripe's dashboard.
import { NotPermitted } from '../provider.ts'

/** The lists that Tundish reads, and the permission for each. Imports read more lists, and need more permissions only then. */
export const LISTS: Readonly<Record<string, string>> = {
  '/v1/payment_intents': 'PaymentIntents',
  '/v1/refunds': 'Refunds',
  '/v1/charges': 'Charges',
  '/v1/disputes': 'Disputes',
  '/v1/customers': 'Customers',
  '/v1/events': 'Events',
  '/v1/balance_transactions': 'Balance',
}

const OBJECTS: Readonly<Record<string, string>> = {
  '/v1/account': 'Accounts',
  '/v1/balance': 'Balance',
  '/v1/checkout/sessions': 'Checkout Sessions',
}

/** Stripe's message names the missing permission by a word like `rak_dispute_read`. */
export const permissionIn = ({ message }: Record<string, unknown>): string | undefined =>
  /\b(rak_[a-z_]{1,60})\b/.exec(String(message))?.[1]

/** The error for what the key may not read. */
export function notPermitted(path: string, error: Record<string, unknown>): NotPermitted {
  const name = LISTS[path] ?? OBJECTS[path]
  const word = permissionIn(error)
  const permission = name === undefined ? `read ${path}` : `${name}: read`
  return new NotPermitted(word === undefined ? permission : `${permission} (${word})`)
}
