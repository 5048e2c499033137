// Stripe's fees, read from the balance transactions of charges, refunds and disputes.
import type { Move } from '../../../core/records/payment-move.ts'
import type { BalanceEntries, Fee } from '../fees.ts'
import type { NotBegun } from '../outcomes.ts'
import { ProviderError } from '../provider.ts'
import { causeOfRejection, fieldsOf, textOf } from '../transport.ts'
import { type Fields, pathOf, responseError, type StripeApi } from './api.ts'
import { idOf, readSum, readTime } from './objects.ts'

/** Expands the charge, refund or dispute that a balance transaction belongs to. */
const WITH_SOURCE = ['source']

/**
 * The fee of one balance transaction. undefined if it does not exist, is of another kind, such as a payout, or is in a
 * currency that cannot be converted. `not_begun` if the key lacks the permission to read it.
 */
export async function feeOf(api: StripeApi, entryId: string, signal: AbortSignal): Promise<Fee | NotBegun | undefined> {
  const path = pathOf('balance_transactions', entryId)
  const { status, body, error } = await api.get(path, { expand: WITH_SOURCE }, signal)
  if (status === 404) return undefined
  if (causeOfRejection(status) === 'credentials')
    return { outcome: 'not_begun', why: responseError(status, error).message, cause: 'credentials' }
  if (status !== 200) throw responseError(status, error)
  return readFeeIfPossible(body)
}

/** One page of fees since an instant, newest first. `next` is passed as `after` for the following page. */
export async function feesPage(
  api: StripeApi,
  since: string,
  after: string | undefined,
  signal: AbortSignal,
): Promise<{ fees: Fee[]; next: string | undefined }> {
  const created = { gte: Math.floor(Date.parse(since) / 1000) }
  const params = { created, starting_after: after, expand: WITH_SOURCE.map((path) => `data.${path}`) }
  const { items, hasMore } = await api.page('/v1/balance_transactions', params, signal)
  const next = hasMore ? (textOf(items.at(-1)?.['id']) ?? undefined) : undefined
  return { fees: items.flatMap((entry) => readFeeIfPossible(entry) ?? []), next }
}

/** Returns undefined for an entry that cannot be read, such as one in an unknown currency: no charge may fail for its fee. */
function readFeeIfPossible(entry: Fields): Fee | undefined {
  try {
    return readFee(entry)
  } catch (error) {
    if (error instanceof ProviderError) return undefined
    throw error
  }
}

/** Reads an entry whose source is expanded; undefined if it belongs to no payment. Throws a `ProviderError`. */
export function readFee(entry: Fields): Fee | undefined {
  const source = fieldsOf(entry['source'])
  const move = moveOf(entry, source)
  if (!move) return undefined
  const transactionIds = move === 'sale' ? idsOfSale(source) : [textOf(source['id'])]
  const ids = transactionIds.filter((id) => id !== null)
  if (ids.length === 0) return undefined
  return {
    entryId: String(entry['id']),
    transactionIds: ids,
    move,
    ...readSum(entry, 'fee'),
    at: readTime(entry['created']),
  }
}

/** Charges made by Tundish are stored under their PaymentIntent, imported ones under the charge. */
const idsOfSale = (source: Fields) => [
  idOf(source['payment_intent']),
  source['object'] === 'charge' ? textOf(source['id']) : idOf(source['charge']),
]

/** The category of an entry that takes back the part of an authorization that was not captured: it belongs to the charge. */
export const RELEASED = 'partial_capture_reversal'

/** The direction of the money, from the kind of source and the sign of the amount, which are clearer than Stripe's many types. */
function moveOf({ type, amount, net, reporting_category }: Fields, source: Fields): Move | undefined {
  // The amount is 0 if the entry is only a fee.
  const isIn = Number(amount) > 0 || (Number(amount) === 0 && Number(net) > 0)
  if (source['object'] === 'charge') return type === 'charge' || type === 'payment' ? 'sale' : undefined
  if (source['object'] === 'refund' && reporting_category === RELEASED) return 'sale'
  if (source['object'] === 'refund') return isIn ? 'refund_failed' : 'refund'
  if (source['object'] === 'dispute') return isIn ? 'chargeback_reversal' : 'chargeback'
  return undefined
}

/** The balance transactions named by the charge, refund or dispute of an event; undefined if there are none. */
export function balanceEntriesOf(event: Fields): BalanceEntries | undefined {
  const object = fieldsOf(fieldsOf(event['data'])['object'])
  const entryIds = entryIdsOf(object)
  if (entryIds.length === 0) return undefined
  const orderId = textOf(fieldsOf(object['metadata'])['tundish_order'])
  return { entryIds, orderId, chargeTransactionId: idOf(object['payment_intent']) }
}

/** The ids of an object's balance transactions. */
export function entryIdsOf(object: Fields): string[] {
  const { balance_transaction, failure_balance_transaction, balance_transactions } = object
  const several = Array.isArray(balance_transactions) ? balance_transactions : []
  return [balance_transaction, failure_balance_transaction, ...several].map(idOf).filter((id) => id !== null)
}
