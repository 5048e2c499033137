// Stripe's fees: of each entry in the account's balance (a balance transaction) that a charge, refund or dispute made.
import type { Move } from '../../records/payment-move.ts'
import type { Entered, Fee } from '../fees.ts'
import type { NotBegun } from '../provider.ts'
import { fieldsOf } from '../transport.ts'
import { type Fields, pathOf, type StripeApi, trouble, turnedAway } from './api.ts'
import { idOf, readSum, readTime, textOf } from './objects.ts'

/** What tells the charge, refund or dispute of an entry. */
const WITH_SOURCE = ['source']

/**
 * The fee of one entry. undefined: there is none, or it is of another kind, such as a payout. `not_begun`: the key is not
 * allowed to read it.
 */
export async function feeOf(api: StripeApi, entryId: string, signal: AbortSignal): Promise<Fee | NotBegun | undefined> {
  const path = pathOf('balance_transactions', entryId)
  const { status, body, error } = await api.get(path, { expand: WITH_SOURCE }, signal)
  if (status === 404) return undefined
  if (turnedAway(status) === 'credentials') {
    return { outcome: 'not_begun', why: trouble(status, error).message, cause: 'credentials' }
  }
  if (status !== 200) throw trouble(status, error)
  return readFee(body)
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
