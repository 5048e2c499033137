// Settles unknown outcomes in the background: takes what is due, whichever process began it, and looks into it.
import { isUnavailable } from '../../lib/pg/db.ts'
import type { Order } from '../charge/orders.ts'
import type { BillingContext } from '../context.ts'
import type { Refund } from '../refund/refunds.ts'
import { leaseMs } from './lease.ts'
import { CHARGE, type Kind, look, REFUND } from './look.ts'

// Twice a second: a lost outcome is looked for a second after it was lost, at the earliest.
const PAUSE_MS = 500
// Of each kind, for one process: well within what the provider's guard lets through beside new charges.
const MOST_AT_ONCE = 16

/** Starts to settle; returns what stops it, once the looks at hand have ended. */
export function startSettling(context: BillingContext): () => Promise<void> {
  const stopping = new AbortController()
  const { signal } = stopping
  const kinds = [keepLooking(context, CHARGE, signal), keepLooking(context, REFUND, signal)]
  return async () => {
    stopping.abort()
    await Promise.all(kinds)
  }
}

/** Takes what is due whenever there is room, without waiting for the slowest look. */
async function keepLooking<Row extends Order | Refund>(
  context: BillingContext,
  kind: Kind<Row>,
  signal: AbortSignal,
): Promise<void> {
  const lease = leaseMs(context.providerTimeoutMs, 2)
  const looking = new Set<Promise<void>>()
  const complain = (error: unknown): undefined => {
    // What was taken is due again when its lease ends.
    if (!isUnavailable(error)) context.log.error({ err: error }, 'Settling failed; it is tried again.')
  }
  while (!signal.aborted) {
    const room = MOST_AT_ONCE - looking.size
    const due = room > 0 ? await kind.rows.takeDue(context.db, room, lease).catch(complain) : []
    for (const row of due ?? []) {
      const done = look(context, kind, row, signal)
        .then(() => {}, complain)
        .finally(() => looking.delete(done))
      looking.add(done)
    }
    await context.clock.sleep(PAUSE_MS, signal)
  }
  await Promise.all(looking)
}
