// Puts objects in place of their ids where a call asks for it: `expand[]=latest_charge`, `expand[]=data.customer`.
import type { Call } from './call.ts'
import { invalid } from './errors.ts'
import { shown } from './payouts.ts'
import type { Kind, State } from './state.ts'

// The fields that hold ids, and the kinds of the object meant.
const FIELDS: Record<string, Kind | Kind[]> = {
  balance_transaction: 'balance_transaction',
  charge: 'charge',
  coupon: 'coupon',
  customer: 'customer',
  discounts: 'discount',
  latest_charge: 'charge',
  payment_intent: 'payment_intent',
  payment_method: 'payment_method',
  price: 'price',
  product: 'product',
  subscription: 'subscription',
  latest_invoice: 'invoice',
  default_payment_method: 'payment_method',
  failure_balance_transaction: 'balance_transaction',
  // Of a balance transaction.
  source: ['charge', 'refund', 'dispute', 'payout'],
}
const SHOWN_IF_ANY = ['applies_to', 'currency_options', 'tiers']
// Stripe's own limit.
const DEEPEST = 4

/** @returns a copy of the response with every path of `expand` expanded */
export function expand(state: State, call: Call, response: object): object {
  const paths = call.params['expand'] ?? []
  if (!Array.isArray(paths)) throw invalid('Invalid array', { param: 'expand' })
  return paths.reduce<object>((expanded, path) => {
    if (typeof path !== 'string' || path.split('.').length > DEEPEST) throw invalid('Invalid path', { param: 'expand' })
    return expandPath(state, expanded, path.split('.'), path)
  }, response)
}

function expandPath(state: State, object: object, [field, ...rest]: string[], path: string): object {
  const fields = object as Record<string, unknown>
  if (field === undefined) return object
  const value = fields[field]
  if (value === null) return object
  // Without a value, such as the tiers of a price that has none.
  if (value === undefined && rest.length === 0 && SHOWN_IF_ANY.includes(field)) return object
  if (Array.isArray(value)) {
    const items = value.map((item) => (typeof item === 'string' ? (findIn(state, field, item) ?? item) : item))
    return { ...object, [field]: items.map((item) => expandPath(state, item, rest, path)) }
  }
  const inner = typeof value === 'string' ? findIn(state, field, value) : value
  if (typeof inner !== 'object' || inner === null) {
    throw invalid(`This property cannot be expanded (${path}).`, { param: 'expand' })
  }
  return { ...object, [field]: expandPath(state, inner, rest, path) }
}

function findIn(state: State, field: string, id: string): object | undefined {
  const kinds = Object.hasOwn(FIELDS, field) ? [FIELDS[field]!].flat() : []
  const found = kinds.map((kind) => state.find(kind, id)).find((one) => one !== undefined)
  return found?.object === 'payout' ? shown(found) : found
}
