// Settles a refund: its outcome, the order's sums, the consumable, the report row and the events, in one transaction, once.
import { joinRates } from '../../../core/records/exchange-rates.ts'
import { formatMinor } from '../../../lib/money.ts'
import type { Commit, Db } from '../../../lib/pg/db.ts'
import { endWhenStalled } from '../../../lib/pg/stalled.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import type { Settled } from '../../providers/outcomes.ts'
import { noDetails } from '../../providers/provider.ts'
import { minorFromDatabase } from '../amount.ts'
import { changedOf } from '../ledger/changed.ts'
import { HELD_COLUMNS } from '../ledger/consumable.ts'
import { lockOrder } from '../ledger/orders.ts'
import { addReportRows } from '../ledger/report-rows.ts'
import type { Verdict } from '../movement/kind-of-movement.ts'
import { type Note, write as writeNotes } from '../movement/provider-calls.ts'
import { effectsOf, type LockedRefund, lockedRefundFrom, reportRow, type SettledRefund, SOFT_SUM } from './effects.ts'
import { REFUND_COLUMNS, type Refund } from './row.ts'

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
    query(LOCK, [organization_id, refund_id, currency]),
  ])
  if (!locked) throw new Error('Bug: a refund is gone')
  return lockedRefundFrom(locked)
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

/** The verdict on a soft refund, which moves no money: the provider is not asked. */
export function softVerdict({ refund_id, amount, currency_code }: Refund): Settled {
  const amountMinor = minorFromDatabase(amount, currency_code)
  return { outcome: 'succeeded', reference: refund_id, amountMinor, currencyCode: currency_code, details: noDetails }
}
