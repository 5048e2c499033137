// Lists every charge made by Tundish, and its refunds, since an instant: oldest first, although Stripe lists the newest first.
import { DAY_S } from '../../../lib/days.ts'
import type { Movement } from '../provider.ts'
import { fieldsOf, textOf } from '../transport.ts'
import type { Fields } from './api.ts'
import { hasFailed } from './intents.ts'
import { readIntent, readSum, readTime } from './objects.ts'

/** Reads all pages of one of Stripe's lists; each page has its own deadline. */
export type ReadAll = (path: string, params: { created: Span; expand: string[] }) => AsyncIterable<Fields>

type Span = { gte: number; lt?: number }

// Fewer objects than this, one page of Stripe's, mean a quiet period.
const FEW = 100
// Stripe lists payments by creation. A payment may be confirmed this long after it was created.
const CONFIRM_WITHIN_S = 3_600

/**
 * Reads consecutive spans of time, so that only the movements of one span are in memory. The last one has no end, because this
 * machine's clock may be behind Stripe's.
 */
export async function* movementsSince(since: string, readAll: ReadAll): AsyncGenerator<Movement> {
  const now = Math.floor(Date.now() / 1000)
  let [from, span] = [Math.floor(Date.parse(since) / 1000) - CONFIRM_WITHIN_S, DAY_S]
  for (let isLast = false; !isLast; ) {
    const to = from + span
    isLast = to > now
    const { movements, read } = await movementsWithin({ gte: from, ...(!isLast && { lt: to }) }, readAll)
    yield* movements.filter(({ at }) => at >= since)
    from = to
    // Quiet periods are read in growing spans to save calls, busy ones day by day.
    span = read < FEW ? span * 2 : DAY_S
  }
}

/** The movements of one span, oldest first, and the number of objects that were read. */
async function movementsWithin(created: Span, readAll: ReadAll) {
  const movements: Movement[] = []
  let read = 0
  const add = async (items: AsyncIterable<Fields>, readOne: (item: Fields) => Movement | undefined) => {
    for await (const item of items) {
      read++
      const movement = readOne(item)
      if (movement) movements.push(movement)
    }
  }
  await add(readAll('/v1/payment_intents', { created, expand: ['data.latest_charge'] }), readCharge)
  await add(readAll('/v1/refunds', { created, expand: ['data.payment_intent'] }), readRefund)
  return { movements: movements.sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0)), read }
}

// The states in which Stripe has not decided yet.
const PENDING = {
  charge: new Set<unknown>(['processing', 'requires_capture']),
  refund: new Set<unknown>(['pending', 'requires_action']),
}

/** Returns undefined for a payment that was never confirmed, and if Tundish did not make the payment. */
function readCharge(item: Fields): Movement | undefined {
  if (!textOf(fieldsOf(item['metadata'])['tundish_key'])) return undefined
  const intent = readIntent(item)
  const { id, status, key, reference, asked, received, customer, charge, createdAt } = intent
  const isPending = PENDING.charge.has(status)
  const isDeclined = status !== 'succeeded' && !isPending && (hasFailed(intent) || status === 'requires_action')
  if (status !== 'succeeded' && !isPending && !isDeclined) return undefined
  return {
    type: 'charge',
    key,
    reference,
    ...(status === 'succeeded' ? received : asked),
    transactionId: id,
    at: charge['created'] === undefined ? createdAt : readTime(charge['created']),
    ...(isPending && { isPending }),
    ...(isDeclined && { hasFailed: true }),
    ...(customer !== null && { providerCustomer: customer }),
  }
}

/** Returns undefined if no money was paid back or will be, or if Tundish did not make the payment. */
function readRefund(item: Fields): Movement | undefined {
  const [own, intent] = [fieldsOf(item['metadata']), fieldsOf(item['payment_intent'])]
  const isOurs = textOf(own['tundish_key']) ?? textOf(fieldsOf(intent['metadata'])['tundish_key'])
  const isPending = PENDING.refund.has(item['status'])
  if ((item['status'] !== 'succeeded' && !isPending) || !isOurs) return undefined
  return {
    type: 'refund',
    key: textOf(own['tundish_key']),
    reference: textOf(own['tundish_refund']),
    ...readSum(item, 'amount'),
    transactionId: String(item['id']),
    ...(textOf(intent['id']) && { chargeTransactionId: String(intent['id']) }),
    at: readTime(item['created']),
    ...(isPending && { isPending }),
  }
}
