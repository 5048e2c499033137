// Settles unknown outcomes in the background: takes rows that are due, whichever process began them, and looks up their outcome.
import { watchClock } from '../../../lib/pg/clock-watch.ts'
import { isUnavailable } from '../../../lib/pg/errors.ts'
import type { Order } from '../charge/row.ts'
import type { BillingContext } from '../context.ts'
import { listAccount } from '../reconcile/reconcile.ts'
import type { Refund } from '../refund/row.ts'
import { CHARGE, type Kind, look, REFUND } from './check-status.ts'
import { leaseMs } from './lease.ts'
import { createAccountTurns } from './turns.ts'
import { takeUnlisted } from './unlisted.ts'

// Twice a second: a lost outcome is looked for a second after it was lost, at the earliest.
const PAUSE_MS = 500
// Of each kind, for one process. Most of them wait for a provider; an account may have a part of them only.
const MAX_AT_ONCE = 64
// A minute: few rows are in progress.
const READINGS_FOR_REPAIR = 30
// A failover blocks new charges until its accounts are listed.
const PAUSE_BETWEEN_LISTS_MS = 5_000
// A list of an hour or two takes some calls; a process that died is replaced after this.
const LIST_LEASE_MS = 300_000
// A look that takes this share of the deadline shows that the provider does not respond.
const HUNG_SHARE = 0.5

/** Starts to settle; returns a function that stops it and resolves when the running looks have ended. */
export function startSettling(context: BillingContext): () => Promise<void> {
  const stopping = new AbortController()
  const { signal } = stopping
  const kinds = [
    keepLooking(context, CHARGE, signal),
    keepLooking(context, REFUND, signal),
    keepListing(context, signal),
  ]
  const stopWatch = watchClock(context, { readings: READINGS_FOR_REPAIR }, async () => {
    const longestLeaseMs = leaseMs(context.providerTimeoutMs, 2)
    await CHARGE.rows.makeDue(context.db, longestLeaseMs)
    await REFUND.rows.makeDue(context.db, longestLeaseMs)
  })
  return async () => {
    stopping.abort()
    await Promise.all([...kinds, stopWatch()])
  }
}

/** Lists the accounts whose commits a failover has lost; those of a restored backup wait for an operator. */
async function keepListing(context: BillingContext, signal: AbortSignal): Promise<void> {
  const { db, clock, log } = context
  while (!signal.aborted) {
    try {
      const account = await takeUnlisted(db.query, LIST_LEASE_MS)
      if (account) await listAccount(context, account)
    } catch (error) {
      if (!isUnavailable(error)) log.error({ err: error }, 'A merchant account could not be listed; it is tried again.')
    }
    await clock.sleep(PAUSE_BETWEEN_LISTS_MS, signal)
  }
}

/** Takes due rows whenever there is room, without waiting for the slowest look. */
async function keepLooking<Row extends Order | Refund>(
  context: BillingContext,
  kind: Kind<Row>,
  signal: AbortSignal,
): Promise<void> {
  const { db, clock, log, providerTimeoutMs } = context
  const lease = leaseMs(providerTimeoutMs, 2)
  const looking = new Set<Promise<void>>()
  const turns = createAccountTurns(MAX_AT_ONCE)
  const logFailure = (error: unknown): undefined => {
    // The rows are due again when their leases end.
    if (!isUnavailable(error)) log.error({ err: error }, 'Settling failed; it is tried again.')
  }

  function start(row: Row): void {
    const begunMs = clock.monotonicMs()
    turns.begin(row)
    const done = look(context, kind, row, signal)
      .then(() => {}, logFailure)
      .finally(() => {
        looking.delete(done)
        turns.end(row, clock.monotonicMs() - begunMs > providerTimeoutMs * HUNG_SHARE)
      })
    looking.add(done)
  }

  while (!signal.aborted) {
    const room = turns.room()
    const due = room.most > 0 ? await kind.rows.takeDue(db, room, lease).catch(logFailure) : []
    due?.forEach(start)
    await clock.sleep(PAUSE_MS, signal)
  }
  await Promise.all(looking)
}
