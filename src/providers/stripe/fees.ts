// Stripe's fees: of each entry in the account's balance (a balance transaction) that a charge, refund or dispute made.
import type { Move } from '../../records/payment-move.ts'
import type { Entered, Fee } from '../fees.ts'
import { type NotBegun, ProviderTrouble } from '../provider.ts'
import { fieldsOf } from '../transport.ts'
import { type Fields, PAGE, pathOf, type StripeApi, trouble, turnedAway } from './api.ts'
import { idOf, readSum, readTime, textOf } from './objects.ts'

/** What tells the charge, refund or dispute of an entry. */
const WITH_SOURCE = ['source']

/**
 * The fee of one entry. undefined: there is none, it is of another kind, such as a payout, or in a currency that cannot be
 * converted. `not_begun`: the key is not allowed to read it.
 */
export async function feeOf(api: StripeApi, entryId: string, signal: AbortSignal): Promise<Fee | NotBegun | undefined> {
  const path = pathOf('balance_transactions', entryId)
  const { status, body, error } = await api.get(path, { expand: WITH_SOURCE }, signal)
  if (status === 404) return undefined
  if (turnedAway(status) === 'credentials') return notPermitted(status, error)
  if (status !== 200) throw trouble(status, error)
  return readFeeIfPossible(body)
}

/** The fees of a page of the entries since an instant, newest first, and the entry that the next page goes on behind. */
export async function feesPage(
  api: StripeApi,
  since: string,
  after: string | undefined,
  signal: AbortSignal,
): Promise<{ fees: Fee[]; next: string | undefined } | NotBegun> {
  const created = { gte: Math.floor(Date.parse(since) / 1000) }
  const params = { limit: PAGE, created, starting_after: after, expand: WITH_SOURCE.map((path) => `data.${path}`) }
  const { status, body, error } = await api.get('/v1/balance_transactions', params, signal)
  if (turnedAway(status) === 'credentials') return notPermitted(status, error)
  if (status !== 200 || !Array.isArray(body['data'])) throw trouble(status, error)
  const entries = body['data'].map(fieldsOf)
  const next = body['has_more'] === true ? (textOf(entries.at(-1)?.['id']) ?? undefined) : undefined
  return { fees: entries.flatMap((entry) => readFeeIfPossible(entry) ?? []), next }
}

const notPermitted = (status: number, error: Fields): NotBegun => ({
  outcome: 'not_begun',
  why: trouble(status, error).message,
  cause: 'credentials',
})

/** undefined also for what cannot be read, such as a currency that ISO 4217 has not: nothing may wait for a fee. */
function readFeeIfPossible(entry: Fields): Fee | undefined {
  try {
    return readFee(entry)
  } catch (error) {
    if (error instanceof ProviderTrouble) return undefined
    throw error
  }
}

/** Reads an entry whose source is expanded; undefined for kinds that are no payment. Throws `ProviderTrouble`. */
export function readFee(entry: Fields): Fee | undefined {
  const source = fieldsOf(entry['source'])
  const move = moveOf(entry, source)
  const id = textOf(source['id'])
  if (!move || id === null) return undefined
  const intent = move === 'sale' ? idOf(source['payment_intent']) : null
  return {
    entryId: String(entry['id']),
    // Charges made here are named by their PaymentIntent, imported ones by the charge.
    transactionIds: intent === null ? [id] : [intent, id],
    move,
    ...readSum(entry, 'fee'),
    at: readTime(entry['created']),
  }
}

/** By the source and the sign of the amount, which say more than the many types. */
function moveOf({ type, amount, net }: Fields, source: Fields): Move | undefined {
  // An entry may be a fee alone.
  const isIn = Number(amount) > 0 || (Number(amount) === 0 && Number(net) > 0)
  if (source['object'] === 'charge') return type === 'charge' || type === 'payment' ? 'sale' : undefined
  if (source['object'] === 'refund') return isIn ? 'refund_failed' : 'refund'
  if (source['object'] === 'dispute') return isIn ? 'chargeback_reversal' : 'chargeback'
  return undefined
}

/** The entries that an event names, by its charge, refund or dispute; undefined where it names none. */
export function enteredBy(event: Fields): Entered | undefined {
  const object = fieldsOf(fieldsOf(event['data'])['object'])
  const entryIds = entryIdsOf(object)
  if (entryIds.length === 0) return undefined
  const orderId = textOf(fieldsOf(object['metadata'])['tundish_order'])
  return { entryIds, orderId, chargeTransactionId: idOf(object['payment_intent']) }
}

/** The ids of an object's entries in the balance. */
export function entryIdsOf(object: Fields): string[] {
  const { balance_transaction, failure_balance_transaction, balance_transactions } = object
  const several = Array.isArray(balance_transactions) ? balance_transactions : []
  return [balance_transaction, failure_balance_transaction, ...several].map(idOf).filter((id) => id !== null)
}
