// Settles unknown outcomes in the background: takes rows that are due, whichever process began them, and checks their status.
import { watchClock } from '../../../lib/pg/clock-watch.ts'
import { isUnavailable } from '../../../lib/pg/errors.ts'
import type { BillingContext } from '../context.ts'
import { checkStatus } from './check-status.ts'
import type { InProgress } from './in-progress.ts'
import type { Checked } from './kind-of-movement.ts'
import { leaseMs } from './lease.ts'
import { createAccountTurns } from './turns.ts'

// Twice a second: a lost outcome is checked a second after it was lost, at the earliest.
const PAUSE_MS = 500
// Of each kind, for one process. Most of them wait for a provider; an account may have a part of them only.
const MAX_AT_ONCE = 64
// A minute: few rows are in progress.
const READINGS_FOR_REPAIR = 30
// A check that takes this share of the deadline shows that the provider does not respond.
const HUNG_SHARE = 0.5

/** Starts to check what is due of these kinds. After the signal, the returned function waits until the running checks have ended. */
export function startChecks(
  context: BillingContext,
  kinds: readonly Checked<InProgress>[],
  signal: AbortSignal,
): () => Promise<void> {
  const checks = kinds.map((kind) => keepChecking(context, kind, signal))
  const stopWatch = watchClock(context, { readings: READINGS_FOR_REPAIR }, async () => {
    const longestLeaseMs = leaseMs(context.providerTimeoutMs, 2)
    for (const { rows } of kinds) await rows.makeDue(context.db, longestLeaseMs)
  })
  return async () => {
    await Promise.all([...checks, stopWatch()])
  }
}

/** Takes due rows whenever there is room, without waiting for the slowest check. */
async function keepChecking<Row extends InProgress>(
  context: BillingContext,
  kind: Checked<Row>,
  signal: AbortSignal,
): Promise<void> {
  const { db, clock, log, providerTimeoutMs } = context
  const lease = leaseMs(providerTimeoutMs, 2)
  const checking = new Set<Promise<void>>()
  const turns = createAccountTurns(MAX_AT_ONCE)
  const logFailure = (error: unknown): undefined => {
    // The rows are due again when their leases end.
    if (!isUnavailable(error)) log.error({ err: error }, 'Settling failed; it is tried again.')
  }

  function start(row: Row): void {
    const begunMs = clock.monotonicMs()
    turns.begin(row)
    const done = checkStatus(context, kind, row, signal)
      .then(() => {}, logFailure)
      .finally(() => {
        checking.delete(done)
        turns.end(row, clock.monotonicMs() - begunMs > providerTimeoutMs * HUNG_SHARE)
      })
    checking.add(done)
  }

  while (!signal.aborted) {
    const room = turns.room()
    const due = room.most > 0 ? await kind.rows.takeDue(db, room, lease).catch(logFailure) : []
    due?.forEach(start)
    await clock.sleep(PAUSE_MS, signal)
  }
  await Promise.all(checking)
}
