// The background work of billing: status checks of every kind of movement, and lists of accounts whose commits were lost.
import { isUnavailable } from '../../lib/pg/errors.ts'
import type { BillingContext } from './context.ts'
import { KINDS } from './kinds.ts'
import { startChecks } from './movement/settling.ts'
import { takeUnlisted } from './movement/unlisted.ts'
import { listAccount } from './reconcile/reconcile.ts'

// A failover blocks new charges until its accounts are listed.
const PAUSE_BETWEEN_LISTS_MS = 5_000
// A list of an hour or two takes some calls; a process that died is replaced after this.
const LIST_LEASE_MS = 300_000

/** Starts to settle; returns a function that stops it and resolves when the running checks have ended. */
export function startSettling(context: BillingContext): () => Promise<void> {
  const stopping = new AbortController()
  const { signal } = stopping
  const checksEnded = startChecks(context, KINDS, signal)
  const listing = keepListing(context, signal)
  return async () => {
    stopping.abort()
    await Promise.all([checksEnded(), listing])
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
