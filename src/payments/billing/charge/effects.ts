// Writes what follows from settled charges: orders, report rows, consumables, data API transactions and events.
import { writeFirst } from '../../../core/events/outbox.ts'
import { type Rates, toUsdMinor, writeUsd } from '../../../core/records/exchange-rates.ts'
import { onGivenRows } from '../../../lib/pg/given-rows.ts'
import { rowReader } from '../../../lib/pg/row-reader.ts'
import type { Query } from '../../../lib/pg/types.ts'
import type { Settled } from '../../providers/outcomes.ts'
import { consumableOf, grant, grantedEvent } from '../ledger/consumable.ts'
import { addTransactions, createdEvent, transactionOf } from '../ledger/data-transaction.ts'
import { addReportRows, type ReportRow } from '../ledger/report-rows.ts'
import type { Verdict } from '../movement/kind-of-movement.ts'
import { type Note, write as writeNotes } from '../movement/provider-calls.ts'
import { chargeEvent } from './response.ts'
import { ORDER_NOT_TEXT, type Order } from './row.ts'

/** An order locked for settling, with all columns that settling needs. */
export type Locked = Order &
  Rates & {
    client_metadata: string | null
    profile_id: string | null
    is_erased: boolean
    is_sandbox: boolean
    /** The time of everything that settling writes. */
    stamp: string
    /** The credits that it grants if it succeeds, also by the rules of the organization. */
    all_grants: string | null
  }

export const lockedFrom = rowReader<Omit<Locked, 'is_unsent' | 'is_adopted'>>({
  ...ORDER_NOT_TEXT,
  is_erased: 'boolean',
  is_sandbox: 'boolean',
})

/** A settled order with what its transaction read. */
export type Outcome = Locked & { status: 'succeeded' | 'failed' | 'cancelled' }

/** An order that is settled here and now. */
export interface Done {
  order: Outcome
  verdict: Verdict
  because: string | null
  mismatch: 'amount' | 'currency' | null
}

/** Writes everything that follows from the outcomes, in one round trip. Report rows come last, because their clocks stay locked. */
export async function writeOutcomes(query: Query, done: Done[], notes: Note[]): Promise<void> {
  const moved = done.flatMap(({ order, verdict }) =>
    verdict.outcome === 'refused' ? [] : [movementOf(order, verdict)],
  )
  await Promise.all([
    ...(notes.length > 0 ? [writeNotes(query, notes)] : []),
    ...(done.length > 0 ? [finish(query, done)] : []),
    ...deliver(query, done, moved),
    ...(moved.length > 0 ? [addReportRows(query, moved.flatMap(reportRows), stampsOf(moved))] : []),
  ])
}

const stampsOf = (moved: Movement[]) => moved.map(({ order }) => order.stamp)

async function finish(query: Query, done: Done[]): Promise<void> {
  await query(...FINISH(done.map(finished)))
}

function finished({ order, verdict, because, mismatch }: Done) {
  const { organization_id, order_id, status, failed_message_for_user, amount, currency_code } = order
  const { asked_amount, asked_currency_code, provider_customer, payment_method_token, client_metadata } = order
  return {
    organization_id,
    order_id,
    status,
    failed_message_for_user,
    amount,
    currency_code,
    is_wiped: String(client_metadata === null),
    because,
    asked_amount,
    asked_currency_code,
    mismatch,
    provider_customer,
    payment_method_token,
    charge_transaction_id: verdict.outcome === 'succeeded' ? verdict.details.psp_transaction_id : null,
  }
}

// Orders in progress are those without `settled_at`; by their status, the plan would read the index of all that are in
// progress.
const FINISH = onGivenRows(
  'finish orders',
  {
    organization_id: 'text',
    order_id: 'uuid',
    status: 'text',
    failed_message_for_user: 'text',
    amount: 'numeric',
    currency_code: 'text',
    is_wiped: 'boolean',
    because: 'text',
    asked_amount: 'numeric',
    asked_currency_code: 'text',
    mismatch: 'text',
    provider_customer: 'text',
    payment_method_token: 'text',
    charge_transaction_id: 'text',
  },
  (rows) => `
    update orders o set status = a.status, failed_message_for_user = a.failed_message_for_user, amount = a.amount,
      currency_code = a.currency_code, client_metadata = case when not a.is_wiped then o.client_metadata end,
      asked_amount = nullif(a.asked_amount, a.amount), asked_currency_code = nullif(a.asked_currency_code, a.currency_code),
      provider_mismatch = a.mismatch, provider_customer = a.provider_customer, payment_method_token = a.payment_method_token,
      charge_transaction_id = a.charge_transaction_id,
      resolved_because = a.because, settled_at = db_clock(), lease_until = null, next_look_at = null
    from ${rows}
    where o.organization_id = a.organization_id and o.order_id = a.order_id and o.settled_at is null`,
)

/** Money that moved, or was declined. */
interface Movement {
  order: Outcome
  verdict: Settled
  usdMinor: bigint | null
}

function movementOf(order: Outcome, verdict: Settled): Movement {
  return { order, verdict, usdMinor: toUsdMinor(verdict.amountMinor, verdict.currencyCode, order) }
}

/** Writes the consumables and data API transactions of successes, and the events of all outcomes. */
function deliver(query: Query, done: Done[], moved: Movement[]): Promise<void>[] {
  if (done.length === 0) return []
  const bought = moved.filter(({ order }) => order.status === 'succeeded')
  const consumables = bought.map(({ order }) => ({ project_id: order.project_id, consumable: consumableOf(order) }))
  const transactions = bought.flatMap(({ order, verdict, usdMinor }) => {
    const { profile_id } = order
    if (profile_id === null) return []
    return [
      transactionOf({
        ...order,
        profile_id,
        psp_date: verdict.details.psp_date,
        priceMinor: verdict.amountMinor,
        usdMinor,
      }),
    ]
  })
  const events = [
    ...done.map(({ order }) => ({ project_id: order.project_id, ...chargeEvent(order) })),
    ...consumables.map(({ project_id, consumable }) => ({ project_id, ...grantedEvent(consumable) })),
    ...transactions.map((added) => ({ project_id: added.project_id, ...createdEvent(added) })),
  ]
  return [
    ...(bought.length > 0
      ? [
          grant(
            query,
            consumables.map(({ consumable }) => consumable),
          ),
        ]
      : []),
    ...(transactions.length > 0 ? [addTransactions(query, transactions)] : []),
    // An order has no events before it is settled.
    writeFirst(query, events),
  ]
}

/** The row of a charge, after those of the attempts that failed inside the same payment. */
function reportRows(movement: Movement): ReportRow[] {
  const { failedAttempts = [], isFallback, isCit } = movement.verdict
  const row: ReportRow = { ...reportRow(movement), is_fallback: isFallback, is_cit: isCit }
  const failed = failedAttempts.map(
    ({ details, isFallback }): ReportRow => ({ ...row, status: 'failed', details, is_fallback: isFallback }),
  )
  return [...failed, row]
}

function reportRow({ order, verdict, usdMinor }: Movement): ReportRow {
  const { organization_id, external_id, order_id, amount, currency_code, status } = order
  const { psp, psp_merchant_id, region, payment_method_token, provider_customer } = order
  return {
    organization_id,
    external_id,
    order_id,
    amount,
    amount_usd: writeUsd(usdMinor),
    currency_code,
    status: status === 'succeeded' ? 'succeeded' : 'failed',
    psp_transaction_type: 'sale',
    psp,
    psp_merchant_id,
    psp_customer_id: provider_customer,
    region,
    // Unknown of an adopted charge, if its provider does not return the card.
    payment_method_token: payment_method_token === '' ? null : payment_method_token,
    details: verdict.details,
  }
}
