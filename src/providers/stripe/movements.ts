// Every charge made by Tundish and its refunds since an instant, oldest first, though Stripe lists the newest first.
import type { Movement } from '../provider.ts'
import { fieldsOf } from '../transport.ts'
import type { Fields } from './api.ts'
import { readIntent, readSum, readTime, textOf } from './objects.ts'

/** Reads a whole list of Stripe; each page has a deadline of its own. */
export type ReadAll = (
  path: string,
  params: { created: { gte: number; lt: number }; expand: string[] },
) => AsyncIterable<Fields>

const DAY = 86_400
// A page.
const FEW = 100
// A payment may be confirmed that long after it was created; the list goes by creation.
const CONFIRM_WITHIN = 3_600
// Stripe's clock may be ahead of ours.
const AHEAD = 300

/** Reads one span of time after the other, so that only the movements of one span are in memory. */
export async function* movementsSince(since: string, readAll: ReadAll): AsyncGenerator<Movement> {
  const end = Math.floor(Date.now() / 1000) + AHEAD
  let span = DAY
  for (let from = Math.floor(Date.parse(since) / 1000) - CONFIRM_WITHIN; from < end; ) {
    const { movements, read } = await movementsWithin({ gte: from, lt: from + span }, readAll)
    yield* movements.filter(({ at }) => at >= since)
    from += span
    // Quiet periods take a few calls, busy ones are read day by day.
    span = read < FEW ? span * 2 : DAY
  }
}

/** Oldest first, with how many objects were read for them. */
async function movementsWithin(created: { gte: number; lt: number }, readAll: ReadAll) {
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

/** undefined if no money moved, and for payments not made by Tundish. */
function readCharge(item: Fields): Movement | undefined {
  if (item['status'] !== 'succeeded' || !textOf(fieldsOf(item['metadata'])['tundish_key'])) return undefined
  const { id, key, reference, received, charge, createdAt } = readIntent(item)
  const at = charge['created'] === undefined ? createdAt : readTime(charge['created'])
  return { type: 'charge', key, reference, ...received, transactionId: id, at }
}

/** undefined if nothing was paid back, and for refunds of payments not made by Tundish. */
function readRefund(item: Fields): Movement | undefined {
  const [own, intent] = [fieldsOf(item['metadata']), fieldsOf(item['payment_intent'])]
  const isOurs = textOf(own['tundish_key']) ?? textOf(fieldsOf(intent['metadata'])['tundish_key'])
  if (item['status'] !== 'succeeded' || !isOurs) return undefined
  return {
    type: 'refund',
    key: textOf(own['tundish_key']),
    reference: textOf(own['tundish_refund']),
    ...readSum(item, 'amount'),
    transactionId: String(item['id']),
    ...(textOf(intent['id']) && { chargeTransactionId: String(intent['id']) }),
    at: readTime(item['created']),
  }
}
