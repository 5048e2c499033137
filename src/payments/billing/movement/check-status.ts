// Finds the outcome of a movement and settles it: asks the provider, cancels what never arrived, or schedules the next check.
import { isClash, isUnavailable } from '../../../lib/pg/errors.ts'
import type { NotBegun } from '../../providers/outcomes.ts'
import type { Provider } from '../../providers/provider.ts'
import type { BillingContext } from '../context.ts'
import { isKeyRemembered, isNotFoundTwice, isPastDeadline } from './age.ts'
import type { InProgress } from './in-progress.ts'
import { type CallResult, type Checked, isVerdict, type Verdict } from './kind-of-movement.ts'
import { leaseMs, NEGATIVE_CHECKS_APART_S, pendingPauseSeconds } from './lease.ts'
import { keep, type Note, noted, trim } from './provider-calls.ts'
import { logNotBegun } from './psp.ts'

// A status check makes up to two calls.
const CHECKS_PER_TRIM = 50

/** Looks up the outcome of a row whose lease the caller holds, settles it if possible, and returns it as it is then. */
export async function checkStatus<Row extends InProgress>(
  context: BillingContext,
  kind: Checked<Row>,
  row: Row,
  signal?: AbortSignal,
): Promise<Row> {
  const provider = await context.providers.of(row.organization_id, row.psp, row.psp_merchant_id)
  if (!provider) return withoutCall(context, kind, row)
  const result = await kind.ask(context, provider, row, signal)
  if (row.status_checks % CHECKS_PER_TRIM === 0) await trim(context, row)
  if (result.outcome !== 'not_begun') return conclude(context, kind, provider, row, result)
  logNotBegun(context, provider, result)
  return withoutCall(context, kind, row)
}

/**
 * Checks at once a row in progress that the provider has news of. The process that has it may have asked the provider before
 * there was any: then the row is checked again as soon as that process gives it back.
 */
export async function checkNow<Row extends InProgress>(
  context: BillingContext,
  kind: Checked<Row>,
  row: Row,
): Promise<void> {
  const taken = await kind.rows.take(context.db, row, leaseMs(context.providerTimeoutMs, 2))
  if (taken) await orUnsettled(context, kind, taken, () => checkStatus(context, kind, taken))
  else await kind.rows.noteNews(context.db, row)
}

/** Gives a row back for which no call was sent. A row that was never sent stays marked as such. */
async function withoutCall<Row extends InProgress>({ db }: BillingContext, kind: Checked<Row>, row: Row): Promise<Row> {
  await kind.rows.handOver(db, row, { isUnsent: isUnsent(row) })
  return row
}

const isUnsent = (row: InProgress) => row.is_unsent ?? false

/** Settles a row by the result of a call, or gives it back with the time of its next check. */
export async function conclude<Row extends InProgress>(
  context: BillingContext,
  kind: Checked<Row>,
  provider: Provider,
  row: Row,
  result: CallResult,
  note?: Note,
): Promise<Row> {
  const { db } = context
  if (isVerdict(result)) return settleOrHandOver(context, kind, provider, row, result, note)
  if (note) keep(context, note)
  // Its movement is there, or was declined: it is looked up, and never sent again.
  if (result.outcome === 'withheld') return checkStatus(context, kind, kind.seen(row, result))
  if (result.outcome === 'authorized') {
    const captured = await kind.capture!(context, provider, row, result.handle)
    const isOpen = captured.outcome === 'authorized'
    return conclude(context, kind, provider, row, isOpen ? { outcome: 'unknown', why: 'it is not captured' } : captured)
  }
  if (result.outcome === 'conflict') {
    if (!isUnsent(row)) return checkStatus(context, kind, row)
    // The call moved nothing. It is sent again after the usual pause, while the provider remembers the key, and looked up after that.
    return withoutCall(context, kind, row)
  }
  if (result.outcome === 'prepared' || result.outcome === 'unconfirmed') {
    const named = result.outcome === 'prepared' ? { ...row, provider_handle: result.handle } : row
    return conclude(context, kind, provider, row, await kind.refuse(context, provider, named))
  }
  if (result.outcome === 'pending') {
    const { transactionId } = result
    await kind.rows.handOver(db, row, {
      pauseS: pendingPauseSeconds(row.age_ms),
      isPending: true,
      transactionId,
    })
  } else if (result.outcome === 'not_found' && isPastDeadline(context, provider, row))
    await kind.rows.handOver(db, row, { pauseS: NEGATIVE_CHECKS_APART_S, isNotFound: true, isUnsent: isUnsent(row) })
  else await kind.rows.handOver(db, row, { isUnsent: result.outcome === 'not_found' && isUnsent(row) })
  return row
}

async function settleOrHandOver<Row extends InProgress>(
  context: BillingContext,
  kind: Checked<Row>,
  provider: Provider,
  row: Row,
  verdict: Verdict,
  note?: Note,
): Promise<Row> {
  try {
    const settled = await kind.settle(context, provider, row, verdict, { note })
    if ('status' in settled) return settled as Row
    const mismatch = 'mismatch' in settled ? settled.mismatch : undefined
    if (mismatch) {
      const message = 'The provider returned another charge or refund, or another currency: an operator must judge it.'
      context.log.error({ ...kind.idsOf(row), mismatch }, message)
    }
    await kind.rows.handOver(context.db, row, { mismatch })
    return row
  } catch (error) {
    // A row that cannot be settled is checked again after the usual pause, so that an operator can take it before. If the
    // database is unavailable, it is checked again when the lease ends.
    await kind.rows.handOver(context.db, row).catch(() => {})
    throw error
  }
}

/** For operators: an error while settling is logged, and returned as `unsettled`, because an operator has to judge it. */
export async function orUnsettled<T, Row extends InProgress>(
  { log }: BillingContext,
  kind: Checked<Row>,
  row: Row,
  settle: () => Promise<T>,
): Promise<T | 'unsettled'> {
  try {
    return await settle()
  } catch (error) {
    // These errors are temporary.
    if (isUnavailable(error) || isClash(error)) throw error
    log.error({ err: error, ...kind.idsOf(row) }, 'The outcome at the provider cannot be settled.')
    return 'unsettled'
  }
}

/**
 * A request that the provider does not know may still be in transit. It is certain that no money moves only when the provider has
 * refused it for good, or does not know it long after its deadline.
 */
export async function askThenRefuse<Row extends InProgress>(
  context: BillingContext,
  kind: Checked<Row>,
  provider: Provider,
  row: Row,
  isWaitedOut: boolean,
  signal?: AbortSignal,
): Promise<CallResult | NotBegun> {
  if (provider.traits.lookUp === 'replay') return replay(context, kind, provider, row, signal)
  const found = await noted(context, row, 'look_up', () => kind.lookUp(provider, row, signal))
  if (found.outcome === 'unconfirmed') return kind.refuse(context, provider, row, signal)
  if (found.outcome !== 'not_found') return found
  if (!isWaitedOut) return kind.refuse(context, provider, row, signal)
  return isNotFoundTwice(context, provider, row) ? { outcome: 'refused' } : found
}

/** Makes the call again while the provider remembers its key, and never after that: it would move the money once more. */
async function replay<Row extends InProgress>(
  context: BillingContext,
  kind: Checked<Row>,
  provider: Provider,
  row: Row,
  signal?: AbortSignal,
): Promise<CallResult | NotBegun> {
  if (!isKeyRemembered(provider, row)) return { outcome: 'unknown', why: 'the provider may have forgotten the key' }
  const result = await noted(context, row, kind.type, () => kind.replay(provider, row, signal))
  if (result.outcome === 'conflict') return { outcome: 'unknown', why: 'the provider has another call under the key' }
  return result
}
