// Parses Primer's payments. A form from which the money cannot be read throws a `ProviderError`; other fields may be missing.
import { readAnyCurrency } from '../../../lib/money.ts'
import type { Sum } from '../outcomes.ts'
import { ProviderError } from '../provider.ts'
import { fieldsOf, textOf } from '../transport.ts'
import type { Fields } from './api.ts'
import { isConvertible } from './money.ts'

/** One attempt of a payment at a processor, or a refund. */
export interface Transaction {
  type: string
  status: string
  /** The processor and its account. */
  processor: string | null
  /** Null if Primer returned none: its own examples have none. */
  sum: Sum | null
  /** Our reference of a refund; of a charge that of its payment. */
  orderId: string | null
  processorTransactionId: string | null
  cardTokenType: string | null
  date: string | null
  /** Why it was cancelled or refunded, as the caller said. */
  reason: string | null
  statusReason: Fields | null
}

export interface Payment {
  id: string
  status: string
  orderId: string | null
  /** From the metadata that Tundish sets; null for payments made by others. */
  key: string | null
  reference: string | null
  asked: Sum
  /** The sum of all captures; null if the response lacks it. */
  capturedMinor: bigint | null
  customer: string | null
  token: string | null
  needsAction: boolean
  statusReason: Fields | null
  /** The attempts to charge, oldest first. */
  sales: Transaction[]
  /** Oldest first. */
  refunds: Transaction[]
  date: string | null
  updatedAt: string | null
  body: Fields
}

export function readPayment(body: Fields): Payment {
  const { id, status, requiredAction, statusReason, transactions } = body
  if (typeof id !== 'string' || id === '' || typeof status !== 'string') {
    throw new ProviderError('returned an object that is not a payment')
  }
  const asked = readSum(body)
  if (!asked) throw new ProviderError('returned a payment without amount and currency')
  const method = fieldsOf(body['paymentMethod'])
  const all = (Array.isArray(transactions) ? transactions : []).map(readTransaction)
  const captured = fieldsOf(body['processor'])['amountCaptured']
  return {
    id,
    status,
    orderId: textOf(body['orderId']),
    ...ownIds(body),
    asked,
    capturedMinor: isAmount(captured) ? BigInt(captured) : null,
    customer: textOf(body['customerId']),
    token: textOf(method['paymentMethodToken']),
    needsAction: isObject(requiredAction),
    statusReason: isObject(statusReason) ? fieldsOf(statusReason) : null,
    sales: inOrderOfTime(all.filter(({ type }) => type === 'SALE')),
    refunds: inOrderOfTime(all.filter(({ type }) => type === 'REFUND')),
    date: readTime(body['date']),
    updatedAt: readTime(body['dateUpdated']),
    body,
  }
}

/** Our key and our id of the order, of a payment or of its summary. */
export function ownIds(body: Fields): { key: string | null; reference: string | null } {
  const { tundish_key, tundish_order } = fieldsOf(body['metadata'])
  return { key: textOf(tundish_key), reference: textOf(tundish_order) }
}

// The schema names these fields `transactionType`, `processorStatus` and `processorName`, but lists `type`, `status` and `processor`
// as the required ones, and the examples mix both.
function readTransaction(value: unknown): Transaction {
  const one = fieldsOf(value)
  const reason = one['processorStatusReason']
  const names = [textOf(one['processorName']) ?? textOf(one['processor']), textOf(one['processorMerchantId'])]
  return {
    type: textOf(one['transactionType']) ?? textOf(one['type']) ?? '',
    status: textOf(one['processorStatus']) ?? textOf(one['status']) ?? '',
    processor: names.every((name) => name === null) ? null : names.map((name) => name ?? '').join(' '),
    sum: readSum(one),
    orderId: textOf(one['orderId']),
    processorTransactionId: textOf(one['processorTransactionId']),
    cardTokenType: textOf(one['cardTokenType']),
    date: readTime(one['date']),
    reason: textOf(one['reason']),
    statusReason: isObject(reason) ? fieldsOf(reason) : null,
  }
}

/** By their dates; those without one stay where they are. The order of the list is not documented. */
function inOrderOfTime(transactions: Transaction[]): Transaction[] {
  if (transactions.some(({ date }) => date === null)) return transactions
  return transactions.toSorted((one, other) => (one.date! < other.date! ? -1 : one.date! > other.date! ? 1 : 0))
}

/** Null without an amount. Throws for a currency whose minor units are in doubt. */
function readSum({ amount, currencyCode }: Fields): Sum | null {
  if (!isAmount(amount) || typeof currencyCode !== 'string') return null
  const code = readAnyCurrency(currencyCode)
  if (code === undefined || !isConvertible(code))
    throw new ProviderError(`returned ${amount} ${currencyCode.slice(0, 10)}, which cannot be converted`)
  return { amountMinor: BigInt(amount), currencyCode: code }
}

const isAmount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

/** RFC 3339 in UTC. Primer's times have no zone and are in UTC. Null for a value that is no time. */
export function readTime(value: unknown): string | null {
  const text = textOf(value)
  if (text === null) return null
  const match = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?$/.exec(text)
  if (!match) return null
  const [, day, time, fraction = '', zone = 'Z'] = match
  const at = new Date(`${day}T${time}${zone === 'Z' ? zone : zone.replace(/^(...):?/, '$1:')}`)
  const year = at.getUTCFullYear()
  // PostgreSQL does not know the year 0.
  if (!(year >= 1 && year <= 9999)) return null
  return at.toISOString().replace(/\.\d+Z$/, `.${fraction.padEnd(6, '0').slice(0, 6)}Z`)
}

export const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
