// Settles, in the background, what nobody heard the outcome of: takes what is due, wherever it was begun, and looks into it.
import { isUnavailable } from '../../lib/pg/db.ts'
import * as charges from '../charge/orders.ts'
import type { BillingContext } from '../context.ts'
import * as refunds from '../refund/refunds.ts'
import { lookIntoCharge, lookIntoRefund } from './ask-provider.ts'
import { leaseMs } from './lease.ts'

// Twice a second: a lost outcome is looked for a second after it was lost, at the earliest.
const PAUSE_MS = 500
// Of each kind, for one process: well within what the provider's guard lets through beside new charges.
const MOST_AT_ONCE = 16

/** Starts to settle; answers what stops it, once the looks at hand have ended. */
export function startSettling(context: BillingContext): () => Promise<void> {
  const stopping = new AbortController()
  const { signal } = stopping
  const lease = leaseMs(context.providerTimeoutMs, 2)
  const kinds = [
    keepLooking(context, signal, (limit) => charges.takeDue(context.db, limit, lease), lookIntoCharge),
    keepLooking(context, signal, (limit) => refunds.takeDue(context.db, limit, lease), lookIntoRefund),
  ]
  return async () => {
    stopping.abort()
    await Promise.all(kinds)
  }
}

/** Takes what is due whenever there is room, without waiting for the slowest look. */
async function keepLooking<T>(
  context: BillingContext,
  signal: AbortSignal,
  take: (limit: number) => Promise<T[]>,
  look: (context: BillingContext, due: T, signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  const looking = new Set<Promise<void>>()
  const complain = (error: unknown): undefined => {
    // What was taken is due again when its lease ends.
    if (!isUnavailable(error)) context.log.error({ err: error }, 'Settling failed; it is tried again.')
  }
  while (!signal.aborted) {
    const room = MOST_AT_ONCE - looking.size
    const due = room > 0 ? await take(room).catch(complain) : []
    for (const one of due ?? []) {
      const done = look(context, one, signal)
        .then(() => {}, complain)
        .finally(() => looking.delete(done))
      looking.add(done)
    }
    await context.clock.sleep(PAUSE_MS, signal)
  }
  await Promise.all(looking)
}
