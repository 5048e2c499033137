// Settles a charge: its outcome and all that follows from it become true in one transaction, once.
import { type Event, write as writeEvents } from '../events/outbox.ts'
import type { Db, Query, Statement } from '../lib/db.ts'
import { formatMinor } from '../lib/money.ts'
import type { Refused, Settled } from '../providers/provider.ts'
import { chargeEvent } from './charge-answer.ts'
import { ORDER_COLUMNS, type Order } from './charges.ts'
import { grant } from './consumable.ts'
import { addTransaction } from './data-transaction.ts'
import { failedMessageForUser } from './declines.ts'
import { joinRates, type Rates, toUsdMinor, writeUsd } from './exchange.ts'
import { addReportRow, type ReportRow } from './report.ts'

/** What a provider has decided: a charge that succeeded or failed, or one that it refuses for good. */
export type Verdict = Settled | Refused

/** An order locked for settling, with all that settling needs to know. */
type Locked = Order &
  Rates & {
    client_metadata: string | null
    profile_id: string | null
    erased: 't' | 'f'
    /** When all of this happens. */
    stamp: string
  }

type Outcome = Locked & { status: 'succeeded' | 'failed' | 'cancelled' }

/**
 * Settles an order in progress by the provider's verdict, and answers it as it stands then. An order that is settled
 * already stays as it is, whatever the verdict. `because` is an operator's reason for a verdict of their own.
 */
export async function settle(db: Db, order: Order, verdict: Verdict, because: string | null = null): Promise<Order> {
  return db.tx(async (query) => {
    if (order.has_metadata === 't') await query(KEEP_ERASURE_AWAY, [order.organization_id, order.order_id])
    const locked = await lock(query, order, verdict)
    if (locked.status !== 'processing') return locked
    const outcome = outcomeOf(locked, verdict)
    await finish(query, outcome, because)
    if (verdict.outcome === 'refused') await writeEvents(query, outcome.project_id, [chargeEvent(outcome)])
    else await record(query, outcome, verdict)
    return outcome
  })
}

// An event holds the caller's metadata: whoever erases the profile waits for the commit, and then wipes it there too.
const KEEP_ERASURE_AWAY: Statement = {
  name: 'keep erasure away from order',
  text: `
    select 1 from profiles p where (p.project_id, p.id) = (
      select c.project_id, c.profile_id from orders o
      join customers c on c.organization_id = o.organization_id and c.external_id = o.external_id
      where o.organization_id = $1 and o.order_id = $2) for key share`,
}

async function lock(query: Query, order: Order, verdict: Verdict): Promise<Locked> {
  const currency = verdict.outcome === 'refused' ? order.currency_code : verdict.currencyCode
  const [locked] = await query<Locked>(LOCK, [order.organization_id, order.order_id, currency])
  if (!locked) throw new Error('Bug: an order is gone')
  return locked
}

const LOCK: Statement = {
  name: 'lock order',
  text: `
    select ${ORDER_COLUMNS}, o.client_metadata, c.profile_id, p.anonymized_at is not null as erased,
      rates.currency_per_euro, rates.usd_per_euro, begin_write(o.project_id) as stamp
    from orders o
    join customers c on c.organization_id = o.organization_id and c.external_id = o.external_id
    left join profiles p on p.project_id = c.project_id and p.id = c.profile_id
    ${joinRates('o.organization_id', '$3', 'o.created_at')}
    where o.organization_id = $1 and o.order_id = $2 for no key update of o`,
}

/** The order as it will be. The provider's word on amount and currency is the truth of what was charged. */
function outcomeOf(locked: Locked, verdict: Verdict): Outcome {
  const client_metadata = locked.erased === 't' ? null : locked.client_metadata
  if (verdict.outcome === 'refused') return { ...locked, client_metadata, status: 'cancelled' }
  const { outcome, details, amountMinor, currencyCode } = verdict
  return {
    ...locked,
    client_metadata,
    status: outcome,
    amount: formatMinor(amountMinor, currencyCode),
    currency_code: currencyCode,
    failed_message_for_user: outcome === 'failed' ? failedMessageForUser(details.psp_reason_code) : '',
  }
}

async function finish(query: Query, order: Outcome, because: string | null): Promise<void> {
  const { organization_id, order_id, status, failed_message_for_user, amount, currency_code, client_metadata } = order
  const isWiped = client_metadata === null
  const key = [organization_id, order_id]
  await query(FINISH, [...key, status, failed_message_for_user, amount, currency_code, isWiped, because])
}

const FINISH: Statement = {
  name: 'finish order',
  text: `
    update orders set status = $3, failed_message_for_user = $4, amount = $5, currency_code = $6,
      client_metadata = case when not $7 then client_metadata end, resolved_because = $8,
      settled_at = db_clock(), lease_until = null, next_look_at = null
    where organization_id = $1 and order_id = $2 and status = 'processing'`,
}

/** Writes what follows from money that moved or was declined. The report row comes last: its clock stays locked. */
async function record(query: Query, order: Outcome, verdict: Settled): Promise<void> {
  const usdMinor = toUsdMinor(verdict.amountMinor, verdict.currencyCode, order)
  const events = [chargeEvent(order)]
  if (verdict.outcome === 'succeeded') events.push(...(await deliver(query, order, verdict.amountMinor, usdMinor)))
  await writeEvents(query, order.project_id, events)
  await addReportRow(query, reportRow(order, usdMinor), verdict.details)
}

function reportRow(order: Outcome, usdMinor: bigint | null): ReportRow {
  const { organization_id, external_id, order_id, amount, currency_code, status } = order
  const { psp, psp_merchant_id, region, payment_method_token } = order
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
    region,
    payment_method_token,
  }
}

/** What the customer gets for a success: the consumable, and a transaction under the profile. */
async function deliver(query: Query, order: Outcome, minor: bigint, usdMinor: bigint | null): Promise<Event[]> {
  const granted = await grant(query, order)
  const { profile_id } = order
  if (profile_id === null) return [granted]
  return [granted, await addTransaction(query, { ...order, profile_id }, minor, usdMinor)]
}
