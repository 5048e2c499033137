// Finds the outcome of a charge or refund and settles it: asks the provider, ends what never came, or looks again later.
import { isClash, isUnavailable } from '../../../lib/pg/errors.ts'
import type {
  Conflict,
  NotBegun,
  NotFound,
  Pending,
  Prepared,
  Refused,
  Settled,
  Unconfirmed,
  Unknown,
} from '../../providers/outcomes.ts'
import type { Provider } from '../../providers/provider.ts'
import { isVerdict, type Verdict } from '../charge/effects.ts'
import { askForUnprepared } from '../charge/look-up.ts'
import { chargeRequest, type Order, reference as orderReference, ordersInProgress } from '../charge/row.ts'
import { settleByVerdict as settleCharge } from '../charge/verdict.ts'
import type { BillingContext } from '../context.ts'
import { findWithoutKey, lookUpRefund } from '../refund/look-up.ts'
import { type Refund, reference as refundReference, refundRequest, refundsInProgress } from '../refund/row.ts'
import { softVerdict } from '../refund/settle.ts'
import { settleByVerdict as settleRefund } from '../refund/verdict.ts'
import { isNotFoundTwice, isOver, keyLives } from './age.ts'
import type { InProgress, inProgress } from './in-progress.ts'
import { heldForCall } from './in-time.ts'
import { NEGATIVE_LOOKS_APART_S, pendingPauseSeconds } from './lease.ts'
import { keep, type Note, noted, trim } from './provider-calls.ts'
import { logNotBegun } from './psp.ts'

/** The outcomes that a provider may return for a charge or refund that was begun. */
export type Answer = Settled | Refused | Pending | Unknown | NotFound | Conflict | Prepared | Unconfirmed

/** How the provider's outcome differs from the request, so that an operator has to judge it. */
export type Mismatch = { mismatch: 'reference' | 'currency' }

/** Operations that exist for charges and for refunds. */
export interface Kind<Row extends InProgress> {
  type: 'charge' | 'refund'
  rows: ReturnType<typeof inProgress<Row>>
  id(row: Row): string
  lookUp(provider: Provider, row: Row, signal?: AbortSignal): ReturnType<Provider['lookUp']>
  /** Repeats the same call, which moves money once for its key: the only look-up that some providers have. */
  replay(provider: Provider, row: Row, signal?: AbortSignal): ReturnType<Provider['refund']>
  /** Asks the provider for the outcome, and makes it refuse a charge or refund that it does not know. */
  ask(context: BillingContext, provider: Provider, row: Row, signal?: AbortSignal): Promise<Answer | NotBegun>
  /** Makes the provider refuse a payment that is prepared, or that it does not know. */
  refuse(context: BillingContext, provider: Provider, row: Row, signal?: AbortSignal): Promise<Answer>
  settle(
    context: BillingContext,
    provider: Provider | undefined,
    row: Row,
    verdict: Verdict,
    how: { because?: string; note?: Note },
  ): Promise<Row | Mismatch | Unknown>
}

export const CHARGE: Kind<Order> = {
  type: 'charge',
  rows: ordersInProgress,
  id: ({ order_id }) => order_id,
  lookUp: (provider, order, signal) => provider.lookUp(orderReference(order), signal),
  replay: (provider, order, signal) => provider.charge!(chargeRequest(order, undefined), signal),
  ask: (context, provider, order, signal) =>
    provider.traits.prepares && order.provider_handle === null
      ? askForUnprepared(context, provider, order, signal)
      : askThenRefuse(context, CHARGE, provider, order, provider.traits.refuse === 'wait_out', signal),
  refuse: (context, provider, order, signal) =>
    noted(context, order, 'refuse', () => provider.refuse(orderReference(order), signal)),
  settle: settleCharge,
}

export const REFUND: Kind<Refund> = {
  type: 'refund',
  rows: refundsInProgress,
  id: ({ refund_id }) => refund_id,
  lookUp: lookUpRefund,
  replay: (provider, refund, signal) => provider.refund(refundRequest(refund, undefined), signal),
  async ask(context, provider, refund, signal) {
    if (refund.soft_refund === 't') return softVerdict(refund)
    // It exists at the provider, so there is nothing to refuse, and no call of ours to repeat.
    if (refund.is_adopted === 't') {
      const found = await noted(context, refund, 'look_up', () => lookUpRefund(provider, refund, signal))
      return found.outcome === 'not_found'
        ? { outcome: 'unknown', why: 'the provider does not list it any more' }
        : found
    }
    // No call was made for it, so this is its first: not later than the provider remembers the key.
    if (refund.is_unsent === 't' && keyLives(provider, refund)) return sendLate(context, provider, refund, signal)
    const answer = await askThenRefuse(context, REFUND, provider, refund, !provider.refuseRefund, signal)
    if (answer.outcome !== 'refused' || provider.refuseRefund) return answer
    return (await findWithoutKey(context.db.query, provider, refund, signal)) ?? answer
  },
  async refuse(context, provider, refund, signal) {
    if (!provider.refuseRefund) return { outcome: 'unknown', why: 'the provider cannot cancel a refund' }
    return noted(context, refund, 'refuse', () => provider.refuseRefund!(refundReference(refund), signal))
  },
  settle: settleRefund,
}

async function sendLate(context: BillingContext, provider: Provider, refund: Refund, signal?: AbortSignal) {
  const held = await heldForCall(context, refundsInProgress, refund)
  if (!held) return { outcome: 'not_begun', why: 'the lease was too old', cause: 'busy' } as const
  return noted(context, held, 'refund', () => provider.refund(refundRequest(held, undefined), signal))
}

// A look makes up to two calls.
const LOOKS_PER_TRIM = 50

/** Looks up the outcome of a row whose lease the caller holds, settles it if possible, and returns it as it is then. */
export async function look<Row extends Order | Refund>(
  context: BillingContext,
  kind: Kind<Row>,
  row: Row,
  signal?: AbortSignal,
): Promise<Row> {
  const provider = await context.providers.of(row.organization_id, row.psp, row.psp_merchant_id)
  if (!provider) return withoutCall(context, kind, row)
  const answer = await kind.ask(context, provider, row, signal)
  if (Number(row.looks) % LOOKS_PER_TRIM === 0) await trim(context, row)
  if (answer.outcome !== 'not_begun') return conclude(context, kind, provider, row, answer)
  logNotBegun(context, provider, answer)
  return withoutCall(context, kind, row)
}

/** Gives a row back for which no call was sent. A refund that was never sent stays marked as such. */
async function withoutCall<Row extends Order | Refund>({ db }: BillingContext, kind: Kind<Row>, row: Row) {
  await kind.rows.handOver(db, row, { isUnsent: isUnsent(row) })
  return row
}

const isUnsent = (row: Order | Refund) => 'is_unsent' in row && row.is_unsent === 't'

/** Settles a row by the provider's answer, or gives it back with the time of its next look. */
export async function conclude<Row extends Order | Refund>(
  context: BillingContext,
  kind: Kind<Row>,
  provider: Provider,
  row: Row,
  answer: Answer,
  note?: Note,
): Promise<Row> {
  const { db } = context
  if (isVerdict(answer)) return settleOrHandOver(context, kind, provider, row, answer, note)
  if (note) keep(context, note)
  if (answer.outcome === 'conflict') {
    if (!isUnsent(row)) return look(context, kind, row)
    // The call moved nothing. It is sent again after the usual pause, while the provider remembers the key, and looked up after that.
    return withoutCall(context, kind, row)
  }
  if (answer.outcome === 'prepared' || answer.outcome === 'unconfirmed') {
    const named = answer.outcome === 'prepared' ? { ...row, provider_handle: answer.handle } : row
    return conclude(context, kind, provider, row, await kind.refuse(context, provider, named))
  }
  if (answer.outcome === 'pending') {
    const { transactionId } = answer
    await kind.rows.handOver(db, row, {
      pauseS: pendingPauseSeconds(Number(row.age_ms)),
      isPending: true,
      transactionId,
    })
  } else if (answer.outcome === 'not_found' && isOver(context, row))
    await kind.rows.handOver(db, row, { pauseS: NEGATIVE_LOOKS_APART_S, isNotFound: true, isUnsent: isUnsent(row) })
  else await kind.rows.handOver(db, row, { isUnsent: answer.outcome === 'not_found' && isUnsent(row) })
  return row
}

async function settleOrHandOver<Row extends Order | Refund>(
  context: BillingContext,
  kind: Kind<Row>,
  provider: Provider,
  row: Row,
  verdict: Verdict,
  note?: Note,
): Promise<Row> {
  try {
    const settled = await kind.settle(context, provider, row, verdict, { note })
    if ('status' in settled) return settled
    const mismatch = 'mismatch' in settled ? settled.mismatch : undefined
    if (mismatch) {
      const message = 'The provider returned another charge or refund, or another currency: an operator must judge it.'
      context.log.error({ ...idsOf(row), mismatch }, message)
    }
    await kind.rows.handOver(context.db, row, { mismatch })
    return row
  } catch (error) {
    // A row that cannot be settled is looked at again after the usual pause, so that an operator can take it meanwhile. If the
    // database is unavailable, it is looked at again when the lease ends.
    await kind.rows.handOver(context.db, row).catch(() => {})
    throw error
  }
}

/** For operators: an error while settling is logged, and returned as `unsettled`, because an operator has to judge it. */
export async function orUnsettled<T>(
  { log }: BillingContext,
  row: Order | Refund,
  settle: () => Promise<T>,
): Promise<T | 'unsettled'> {
  try {
    return await settle()
  } catch (error) {
    // These errors are temporary.
    if (isUnavailable(error) || isClash(error)) throw error
    log.error({ err: error, ...idsOf(row) }, 'The outcome at the provider cannot be settled.')
    return 'unsettled'
  }
}

/** The ids of a row for a line of the log. */
export const idsOf = (row: Order | Refund) => ({
  order_id: row.order_id,
  ...('refund_id' in row && { refund_id: row.refund_id }),
})

/**
 * A request that the provider does not know may still be in transit. It is certain that no money moves only when the provider has
 * refused it for good, or does not know it long after its deadline.
 */
async function askThenRefuse<Row extends Order | Refund>(
  context: BillingContext,
  kind: Kind<Row>,
  provider: Provider,
  row: Row,
  isWaitedOut: boolean,
  signal?: AbortSignal,
): Promise<Answer | NotBegun> {
  if (provider.traits.lookUp === 'replay') return replay(context, kind, provider, row, signal)
  const found = await noted(context, row, 'look_up', () => kind.lookUp(provider, row, signal))
  if (found.outcome === 'unconfirmed') return kind.refuse(context, provider, row, signal)
  if (found.outcome !== 'not_found') return found
  if (!isWaitedOut) return kind.refuse(context, provider, row, signal)
  return isNotFoundTwice(context, row) ? { outcome: 'refused' } : found
}

/** Makes the call again while the provider knows its key, and never after that: it would move the money once more. */
async function replay<Row extends Order | Refund>(
  context: BillingContext,
  kind: Kind<Row>,
  provider: Provider,
  row: Row,
  signal?: AbortSignal,
): Promise<Answer | NotBegun> {
  if (!keyLives(provider, row)) return { outcome: 'unknown', why: 'the provider may have forgotten the key' }
  const answer = await noted(context, row, kind.type, () => kind.replay(provider, row, signal))
  if (answer.outcome === 'conflict') return { outcome: 'unknown', why: 'the provider has another call under the key' }
  return answer
}
