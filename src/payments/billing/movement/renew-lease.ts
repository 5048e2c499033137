// Ensures that a process calls the provider only while enough of its lease is left for the whole call.
import type { BillingContext } from '../context.ts'
import type { InProgress, Rows } from './in-progress.ts'
import { leaseAllowsCall, leaseMs } from './lease.ts'

// A process whose lease is too old even after this many renewals is too slow to charge.
const MAX_RENEWALS = 3

/**
 * Returns the row once its lease has time for one call. A lease that began too long ago, because the claim waited for a lock
 * or the process was frozen, is renewed. Returns undefined if another process has the row, or it was given back.
 *
 * @param sentMs the monotonic time before the statement was sent that began the lease
 */
export async function renewLeaseForCall<Row extends InProgress>(
  { db, clock, providerTimeoutMs }: BillingContext,
  rows: Rows<Row>,
  row: Row,
  sentMs: number,
): Promise<Row | undefined> {
  let held: Row | undefined = row
  for (let renewals = 0; !leaseAllowsCall(providerTimeoutMs, clock.monotonicMs() - sentMs); renewals++) {
    if (renewals === MAX_RENEWALS) {
      await rows.handOver(db, row, { isUnsent: true })
      return undefined
    }
    sentMs = clock.monotonicMs()
    held = await rows.renew(db, row, leaseMs(providerTimeoutMs, 1))
    if (!held) return undefined
  }
  return held
}

/**
 * Begins the lease anew for a first call that a status check makes; undefined if another process has the row, or if this one is too
 * slow. The age stays, by which it is judged whether the provider may have forgotten the key.
 */
export async function renewLeaseForFirstCall<Row extends InProgress>(
  { db, clock, providerTimeoutMs }: BillingContext,
  rows: Rows<Row>,
  row: Row,
): Promise<Row | undefined> {
  const sentMs = clock.monotonicMs()
  const held = await rows.renew(db, row, leaseMs(providerTimeoutMs, 1), { keepsAge: true })
  return leaseAllowsCall(providerTimeoutMs, clock.monotonicMs() - sentMs) ? held : undefined
}
