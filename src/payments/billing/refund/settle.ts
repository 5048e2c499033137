// Settles a refund: its outcome, the order's sums, the consumable, the report row and the events, in one transaction, once.
import { type Event, write as writeEvents } from '../../../core/events/outbox.ts'
import { joinRates, type Rates, toUsdMinor, writeUsd } from '../../../core/records/exchange-rates.ts'
import { formatMinor } from '../../../lib/money.ts'
import type { Commit, Db } from '../../../lib/pg/db.ts'
import { endWhenStalled } from '../../../lib/pg/stalled.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import type { Settled } from '../../providers/outcomes.ts'
import { noDetails, type PaymentDetails } from '../../providers/provider.ts'
import { minorFromDatabase } from '../amount.ts'
import type { Verdict } from '../charge/effects.ts'
import { lockOrder } from '../charge/row.ts'
import { revokeShare } from '../credits/grants.ts'
import { changedOf } from '../ledger/changed.ts'
import { HELD_COLUMNS, type Held, restore, restoredEvent, revoke, revokedEvent } from '../ledger/consumable.ts'
import { addReportRows, type ReportRow } from '../ledger/report-rows.ts'
import { type Note, write as writeNotes } from '../movement/provider-calls.ts'
import { refundEvent } from './answer.ts'
import { REFUND_COLUMNS, type Refund } from './row.ts'
import { SOFT_SUM, type Sums, sumsAfter, writeSums } from './sums.ts'

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

export type SettledRefund = LockedRefund & { status: 'succeeded' | 'failed' }

/**
 * Settles a refund in progress by the provider's verdict and returns it as it is then; one that is settled already does
 * not change. A refund that the provider refuses for good has failed: nothing was paid back. `because` is the reason of an
 * operator who decided it, `note` the call to the provider that returned the verdict.
 */
export async function settle(
  db: Db,
  refund: Refund,
  verdict: Verdict,
  { because = null, note }: { because?: string | null; note?: Note } = {},
): Promise<Refund> {
  return db.tx(async (query, commit) => {
    const currency = verdict.outcome === 'refused' ? refund.currency_code : verdict.currencyCode
    const [, locked] = await Promise.all([endWhenStalled(query), lockRefund(query, refund, currency)])
    if (locked.status !== 'processing') return locked
    return finish(query, commit, locked, verdict, because, note ? [note] : [])
  })
}

/** Locks a refund and its order until commit. */
export async function lockRefund(
  query: Query,
  { organization_id, order_id, refund_id }: Pick<Refund, 'organization_id' | 'order_id' | 'refund_id'>,
  currency: string,
): Promise<LockedRefund> {
  const [, [locked]] = await Promise.all([
    lockOrder(query, organization_id, order_id),
    query<LockedRefund>(LOCK, [organization_id, refund_id, currency]),
  ])
  if (!locked) throw new Error('Bug: a refund is gone')
  return locked
}

const LOCK: Statement = {
  name: 'lock refund',
  text: `
    select ${REFUND_COLUMNS}, c.profile_id, rates.currency_per_euro, rates.usd_per_euro, ${HELD_COLUMNS},
      o.amount as order_amount, o.amount_refunded_hard, ${SOFT_SUM} as amount_refunded_soft,
      db_clock() as stamp
    from refunds r
    join orders o on o.organization_id = r.organization_id and o.order_id = r.order_id
    join customers c on c.organization_id = o.organization_id and c.external_id = o.external_id
    left join consumables held on held.organization_id = o.organization_id and held.order_id = o.order_id
    ${joinRates('o.organization_id', '$3', 'r.created_at')}
    where r.organization_id = $1 and r.refund_id = $2 for no key update of r`,
}

/**
 * Sends the outcome, all that follows from it and the commit together, so that the organization's clock is never locked during a
 * round trip to this program.
 */
async function finish(
  query: Query,
  commit: Commit,
  locked: LockedRefund,
  verdict: Verdict,
  because: string | null,
  notes: Note[],
): Promise<Refund> {
  const isRefused = verdict.outcome === 'refused'
  const outcome: SettledRefund = {
    ...locked,
    status: isRefused ? 'failed' : verdict.outcome,
    amount: isRefused ? locked.amount : formatMinor(verdict.amountMinor, verdict.currencyCode),
    provider_transaction_id: isRefused ? null : verdict.details.psp_transaction_id,
  }
  const { refund, writes } = await effectsOf(query, outcome)
  const written = Promise.all([
    ...(notes.length > 0 ? [writeNotes(query, notes)] : []),
    query(FINISH, [
      ...[outcome.organization_id, outcome.refund_id, outcome.status, outcome.amount, because],
      outcome.provider_transaction_id,
    ]),
    ...writes,
    addReportRows(query, [reportRow(outcome, isRefused ? noDetails : verdict.details)]),
  ])
  commit()
  await written
  return refund
}

const FINISH: Statement = {
  name: 'finish refund',
  text: `
    update refunds set status = $3, amount = $4, asked_amount = nullif(coalesce(asked_amount, amount), $4::numeric),
      settled_at = db_clock(), updated_at = ${changedOf('refunds')}, lease_until = null, next_look_at = null, resolved_because = $5,
      provider_transaction_id = coalesce($6, provider_transaction_id), provider_mismatch = null, is_unsent = false
    where organization_id = $1 and refund_id = $2 and status = 'processing'`,
}

/** The order's sums, the consumable and the events that follow from a refund that is settled now. */
export async function effectsOf(
  query: Query,
  outcome: SettledRefund,
): Promise<{ refund: Refund; writes: Promise<unknown>[] }> {
  if (outcome.status === 'failed') return { refund: outcome, writes: [writeRefundEvents(query, outcome, [])] }
  const sums = sumsAfter('added', outcome)
  await followCredits(query, outcome, sums, 'refund')
  const revokes = sums.isWhole && outcome.held_is_active === 't'
  const refund: SettledRefund = {
    ...outcome,
    amount_refunded: sums.amount_refunded,
    consumable_revoked: revokes ? 't' : outcome.consumable_revoked,
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
  const restores = sums.wasWhole && !sums.isWhole && locked.held_is_active === 'f' && locked.is_charged_back === 'f'
  const refund: SettledRefund = {
    ...locked,
    status: 'failed',
    amount_refunded: sums.amount_refunded,
    consumable_revoked: restores ? 'f' : locked.consumable_revoked,
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
  if (locked.has_credits === 'f') return
  const whole = minorFromDatabase(locked.order_amount, locked.currency_code)
  const part = locked.is_charged_back === 't' ? whole : minorFromDatabase(amount_refunded_hard, locked.currency_code)
  await revokeShare(query, locked, { part, whole }, cause)
}

/** The verdict on a soft refund, which moves no money: the provider is not asked. */
export function softVerdict({ refund_id, amount, currency_code }: Refund): Settled {
  const amountMinor = minorFromDatabase(amount, currency_code)
  return { outcome: 'succeeded', reference: refund_id, amountMinor, currencyCode: currency_code, details: noDetails }
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
    psp_transaction_type: outcome.soft_refund === 't' ? 'soft_refund' : 'refund',
    psp,
    psp_merchant_id,
    psp_customer_id: null,
    region,
    payment_method_token: null,
    details,
  }
}
