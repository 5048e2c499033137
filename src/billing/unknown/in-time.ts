// Sees to it that a process calls the provider only while its lease of the charge or refund has time for the whole call.
import type { BillingContext } from '../context.ts'
import type { InProgress, inProgress } from './in-progress.ts'
import { leaseAllowsCall, leaseMs } from './lease.ts'

// Each renewal takes a statement; a process that is too slow for its margin this often is too slow to charge.
const MOST_RENEWALS = 3

/**
 * The row, with time for one call in its lease: a lease that has begun too long ago (the claim waited for a lock, the
 * process stood still) is begun anew. Undefined: the row is another process's by now, or it was given back to the queue.
 *
 * @param sentMs the monotonic time before the statement was sent that began the lease
 */
export async function inTime<Row extends InProgress>(
  { db, clock, providerTimeoutMs }: BillingContext,
  rows: ReturnType<typeof inProgress<Row>>,
  row: Row,
  sentMs: number,
): Promise<Row | undefined> {
  let held: Row | undefined = row
  for (let renewals = 0; !leaseAllowsCall(providerTimeoutMs, clock.monotonicMs() - sentMs); renewals++) {
    if (renewals === MOST_RENEWALS) {
      await rows.handOver(db, row, { isUnsent: true })
      return undefined
    }
    sentMs = clock.monotonicMs()
    held = await rows.renew(db, row, leaseMs(providerTimeoutMs, 1))
    if (!held) return undefined
  }
  return held
}
