// What follows from a settled refund: the order's sums, the consumable, credits, the report row and events.
import { type Event, write as writeEvents } from '../../../core/events/outbox.ts'
import { type Rates, toUsdMinor, writeUsd } from '../../../core/records/exchange-rates.ts'
import { formatMinor } from '../../../lib/money.ts'
import { rowReader } from '../../../lib/pg/row-reader.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import type { PaymentDetails } from '../../providers/provider.ts'
import { minorFromDatabase } from '../amount.ts'
import { revokeShare } from '../credits/grants.ts'
import { HELD_NOT_TEXT, type Held, restore, restoredEvent, revoke, revokedEvent } from '../ledger/consumable.ts'
import type { ReportRow } from '../ledger/report-rows.ts'
import { refundEvent } from './response.ts'
import { REFUND_NOT_TEXT, type Refund } from './row.ts'

/** A refund locked together with its order, with all columns that settling needs. */
export type LockedRefund = Refund &
  Rates &
  Held & {
    profile_id: string | null
    order_amount: string
    amount_refunded_hard: string
    amount_refunded_soft: string
    /** The time of everything that settling writes. */
    stamp: string
  }

export const lockedRefundFrom = rowReader<LockedRefund>({ ...REFUND_NOT_TEXT, ...HELD_NOT_TEXT })

export type SettledRefund = LockedRefund & { status: 'succeeded' | 'failed' }

/** The order's sums, the consumable and the events that follow from a refund that is settled now. */
export async function effectsOf(
  query: Query,
  outcome: SettledRefund,
): Promise<{ refund: Refund; writes: Promise<unknown>[] }> {
  if (outcome.status === 'failed') return { refund: outcome, writes: [writeRefundEvents(query, outcome, [])] }
  const sums = sumsAfter('added', outcome)
  await followCredits(query, outcome, sums, 'refund')
  const revokes = sums.isWhole && outcome.held_is_active === true
  const refund: SettledRefund = {
    ...outcome,
    amount_refunded: sums.amount_refunded,
    consumable_revoked: revokes || outcome.consumable_revoked,
  }
  const writes = [
    writeSums(query, outcome, sums),
    ...(revokes ? [revoke(query, outcome)] : []),
    writeRefundEvents(query, refund, revokes ? [revokedEvent(outcome)] : []),
  ]
  return { refund, writes }
}

const writeRefundEvents = (query: Query, refund: SettledRefund, more: Event[]) =>
  writeEvents(query, refund.project_id, [refundEvent(refund), ...more])

/**
 * Takes a refund that had succeeded out of the order's sums; a consumable that it had revoked is granted again, with its
 * event. The caller has locked the refund and writes its new status.
 */
export async function undo(
  query: Query,
  locked: LockedRefund,
): Promise<{ refund: SettledRefund; writes: Promise<unknown>[] }> {
  const sums = sumsAfter('removed', locked)
  await followCredits(query, locked, sums, 'refund_failed')
  const restores = sums.wasWhole && !sums.isWhole && locked.held_is_active === false && !locked.is_charged_back
  const refund: SettledRefund = {
    ...locked,
    status: 'failed',
    amount_refunded: sums.amount_refunded,
    consumable_revoked: !restores && locked.consumable_revoked,
  }
  const events = restores ? [restoredEvent(locked)] : []
  const writes = [
    writeSums(query, locked, sums),
    ...(restores ? [restore(query, locked)] : []),
    writeRefundEvents(query, refund, events),
  ]
  return { refund, writes }
}

/** Revokes the share of the order's credits that is paid back now. A dispute has taken the whole of them. */
async function followCredits(
  query: Query,
  locked: LockedRefund,
  { amount_refunded_hard }: Sums,
  cause: 'refund' | 'refund_failed',
): Promise<void> {
  if (!locked.has_credits) return
  const whole = minorFromDatabase(locked.order_amount, locked.currency_code)
  const part = locked.is_charged_back ? whole : minorFromDatabase(amount_refunded_hard, locked.currency_code)
  await revokeShare(query, locked, { part, whole }, cause)
}

/** The report row of a refund; the type of a soft one shows that it moved no money. */
export function reportRow(outcome: SettledRefund, details: PaymentDetails): ReportRow {
  const { organization_id, external_id, order_id, amount, currency_code, status, psp, psp_merchant_id, region } =
    outcome
  const usdMinor = toUsdMinor(minorFromDatabase(amount, currency_code), currency_code, outcome)
  return {
    organization_id,
    external_id,
    order_id,
    amount,
    amount_usd: writeUsd(usdMinor),
    currency_code,
    status: status === 'succeeded' ? 'refunded' : 'failed',
    psp_transaction_type: outcome.soft_refund ? 'soft_refund' : 'refund',
    psp,
    psp_merchant_id,
    psp_customer_id: null,
    region,
    payment_method_token: null,
    details,
  }
}

/** A refund, and the sums of its order as they are in the database. */
interface Summed {
  organization_id: string
  order_id: string
  amount: string
  currency_code: string
  soft_refund: boolean
  order_amount: string
  amount_refunded_hard: string
  /** The sum of the soft refunds of the order that succeeded. */
  amount_refunded_soft: string
}

interface Sums {
  amount_refunded: string
  amount_refunded_hard: string
  /** Whether the refunds that moved money added up to the whole amount before, and whether they do now. */
  wasWhole: boolean
  isWhole: boolean
}

/** SQL of `amount_refunded_soft`, of an order `o`. */
export const SOFT_SUM = `(select coalesce(sum(s.amount), 0) from refunds s where s.organization_id = o.organization_id
  and s.order_id = o.order_id and s.soft_refund and s.status = 'succeeded')`

/** The sums of the order when this refund is added, or taken away. */
function sumsAfter(what: 'added' | 'removed', refund: Summed): Sums {
  const { currency_code, soft_refund } = refund
  const minor = (text: string) => minorFromDatabase(text, currency_code)
  const amount = what === 'added' ? minor(refund.amount) : -minor(refund.amount)
  const [soft, hard] = soft_refund ? [amount, 0n] : [0n, amount]
  const whole = minor(refund.order_amount)
  const hardBefore = minor(refund.amount_refunded_hard)
  const hardSum = hardBefore + hard
  // The provider may pay back what a soft refund counts as refunded. The database refuses a sum of such payments above the amount.
  const sum = hardSum + minor(refund.amount_refunded_soft) + soft
  const capped = sum > whole && hardSum <= whole ? whole : sum
  return {
    amount_refunded: formatMinor(capped, currency_code),
    amount_refunded_hard: formatMinor(hardSum, currency_code),
    wasWhole: hardBefore === whole,
    isWhole: hardSum === whole,
  }
}

async function writeSums(
  query: Query,
  { organization_id, order_id }: Pick<Summed, 'organization_id' | 'order_id'>,
  { amount_refunded, amount_refunded_hard }: Sums,
): Promise<void> {
  await query(WRITE, [organization_id, order_id, amount_refunded, amount_refunded_hard])
}

const WRITE: Statement = {
  name: 'write sums of refunds',
  text: `
    update orders set amount_refunded = $3, amount_refunded_hard = $4 where organization_id = $1 and order_id = $2`,
}
