// Records a dispute that the provider reports: report rows, the consumable and events, each once.
import { type Event, write as writeEvents } from '../../../core/events/outbox.ts'
import { joinRates, type Rates, toUsdMinor, writeUsd } from '../../../core/records/exchange-rates.ts'
import { formatMinor } from '../../../lib/money.ts'
import type { Commit } from '../../../lib/pg/db.ts'
import { rowReader } from '../../../lib/pg/row-reader.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import { Type } from '../../../lib/shape/schema.ts'
import { readInstant } from '../../../lib/time.ts'
import { type Dispute, noDetails } from '../../providers/provider.ts'
import { jsonAmount, minorFromDatabase } from '../amount.ts'
import { uuidIn } from '../body.ts'
import { revokeShare } from '../credits/grants.ts'
import {
  HELD_COLUMNS,
  HELD_NOT_TEXT,
  type Held,
  IS_CHARGED_BACK,
  restore,
  restoredEvent,
  revoke,
  revokedEvent,
} from './consumable.ts'
import { lockOrder, type OrderIds } from './orders.ts'
import { addReportRows, type ReportRow } from './report-rows.ts'

/** The `data` of a dispute's events. */
export const disputeEventData = Type.Named('DisputeEventData', {
  dispute_id: Type.String({ description: 'The provider’s identifier of the dispute.' }),
  order_id: uuidIn('Order of the charge.'),
  external_id: Type.String({ description: 'Identifier of the user.' }),
  dispute_status: { type: 'string', enum: ['open', 'won', 'lost'], description: 'State of the dispute.' },
  amount: Type.Number({ description: 'Disputed amount in major units.', examples: [10.5] }),
  currency_code: Type.String({ description: 'ISO 4217 code.', examples: ['USD'] }),
  reason: { type: ['string', 'null'], description: 'The provider’s code for the reason.', examples: ['fraudulent'] },
  funds_withdrawn: Type.Boolean({
    description: 'Whether the bank took the amount back, which revokes the consumable.',
  }),
  opened_at: Type.String({ format: 'date-time', description: 'When the dispute was opened.' }),
})

/**
 * Records the state of a dispute; repeating it changes nothing. Opened: `charge.disputed`. Funds withdrawn: a report row
 * `chargeback`, and the consumable is revoked. Won: `charge.dispute_won`; funds reinstated: a report row
 * `chargeback_reversal`, and the consumable is granted again unless the dispute is lost, refunds have revoked it, or another
 * dispute of the charge has. `commit` is sent with the last statements, for the organization's clock is locked by then; it is
 * left out where more follows in the transaction.
 */
export async function adoptDispute(
  query: Query,
  { organization_id, order_id }: OrderIds,
  dispute: Dispute,
  commit: Commit = () => {},
): Promise<Change> {
  const [, [read]] = await Promise.all([
    lockOrder(query, organization_id, order_id),
    query(READ, [organization_id, order_id, dispute.currencyCode, dispute.disputeId]),
  ])
  if (!read) throw new Error('Bug: a disputed order is gone')
  const order = orderFrom(read)
  const [found] = await query(FIND, [organization_id, order_id, dispute.disputeId])
  const before = found && beforeFrom(found)
  const change = changeOf(before, dispute)
  if (!change.isAny) return change
  await followCredits(query, order, change)
  const written = Promise.all([query(WRITE, paramsOf(order, dispute)), ...effectsOf(query, order, dispute, change)])
  commit()
  await written
  return change
}

/** A dispute that has taken the money revokes all credits of the order, and one that returned it gives back what refunds leave. */
async function followCredits(query: Query, order: LockedOrder, change: Change): Promise<void> {
  if (!order.has_credits) return
  const whole = minorFromDatabase(order.order_amount, order.order_currency)
  const isTaken = change.takes || order.is_disputed_otherwise
  const part = isTaken ? whole : minorFromDatabase(order.amount_refunded_hard, order.order_currency)
  await revokeShare(query, order, { part, whole }, isTaken ? 'dispute' : 'dispute_won')
}

type LockedOrder = Held &
  Rates & {
    organization_id: string
    order_id: string
    external_id: string
    project_id: string
    psp: string
    psp_merchant_id: string | null
    region: string | null
    profile_id: string | null
    order_amount: string
    order_currency: string
    amount_refunded_hard: string
    /** Whether refunds that are not soft add up to the whole amount. */
    is_refunded: boolean
    /** Whether another dispute has taken the money of the order. */
    is_disputed_otherwise: boolean
    stamp: string
  }

const orderFrom = rowReader<LockedOrder>({ ...HELD_NOT_TEXT, is_refunded: 'boolean', is_disputed_otherwise: 'boolean' })

const READ: Statement = {
  name: 'read disputed order',
  text: `
    select o.organization_id, o.order_id, o.external_id, o.project_id, o.psp, o.psp_merchant_id, o.region, c.profile_id,
      o.amount as order_amount, o.currency_code as order_currency, o.amount_refunded_hard,
      o.amount_refunded_hard = o.amount as is_refunded, ${HELD_COLUMNS},
      exists (select from disputes d where d.organization_id = $1 and d.order_id = $2 and d.dispute_id <> $4
        and ${IS_CHARGED_BACK}) as is_disputed_otherwise,
      rates.currency_per_euro, rates.usd_per_euro, db_clock() as stamp
    from orders o
    join customers c on c.organization_id = o.organization_id and c.external_id = o.external_id
    left join consumables held on held.organization_id = o.organization_id and held.order_id = o.order_id
    ${joinRates('o.organization_id', '$3', 'o.created_at')}
    where o.organization_id = $1 and o.order_id = $2`,
}

type Before = { status: string; is_withdrawn: boolean; is_reinstated: boolean }

const beforeFrom = rowReader<Before>({ is_withdrawn: 'boolean', is_reinstated: 'boolean' })

const FIND: Statement = {
  name: 'find dispute',
  text: `select status, funds_withdrawn_at is not null as is_withdrawn, funds_reinstated_at is not null as is_reinstated
         from disputes where organization_id = $1 and order_id = $2 and dispute_id = $3`,
}

interface Change {
  isAny: boolean
  isOpened: boolean
  isWithdrawn: boolean
  isWon: boolean
  isReinstated: boolean
  /** Whether the money of the charge is gone, and whether it is back. */
  takes: boolean
  returns: boolean
}

/** The new parts of a dispute's state. A decision is never undone by `open`, because a look-up may be older than another. */
function changeOf(before: Before | undefined, dispute: Dispute): Change {
  const isWithdrawn = dispute.fundsWithdrawn && !before?.is_withdrawn
  const wasWithdrawn = dispute.fundsWithdrawn || before?.is_withdrawn === true
  const isReinstated = isReturned(dispute) && wasWithdrawn && !before?.is_reinstated
  const wasReinstated = isReinstated || before?.is_reinstated === true
  const isWon = dispute.status === 'won' && before?.status !== 'won'
  const isLost = dispute.status === 'lost' && before?.status !== 'lost'
  const isOpened = before === undefined
  const isAny = isOpened || isWithdrawn || isReinstated || isWon || isLost
  const takes = wasWithdrawn && (!wasReinstated || dispute.status === 'lost')
  return { isAny, isOpened, isWithdrawn, isWon, isReinstated, takes, returns: wasReinstated && !takes }
}

/** Whether the provider has returned what it will return: a part that is returned while the dispute is open may not be all. */
const isReturned = ({ status, reinstatedMinor, amountMinor }: Dispute) =>
  reinstatedMinor > 0n && (status !== 'open' || reinstatedMinor >= amountMinor)

function paramsOf({ organization_id, order_id }: LockedOrder, dispute: Dispute) {
  const { disputeId, amountMinor, currencyCode, status, reason, at, fundsWithdrawn } = dispute
  return [
    ...[organization_id, order_id, disputeId, formatMinor(amountMinor, currencyCode), currencyCode, status, reason],
    ...[readInstant(at), fundsWithdrawn, isReturned(dispute)],
  ]
}

const WRITE: Statement = {
  name: 'write dispute',
  text: `
    insert into disputes as d (organization_id, order_id, dispute_id, amount, currency_code, status, reason, opened_at,
      funds_withdrawn_at, funds_reinstated_at, created_at, updated_at)
    select $1, $2, $3, $4, $5, $6, $7, $8, case when $9 then t.now end, case when $10 then t.now end, t.now, t.now
    from (select begin_write(o.project_id) as now from orders o where o.organization_id = $1 and o.order_id = $2) t
    on conflict (organization_id, order_id, dispute_id) do update
      set updated_at = greatest(excluded.updated_at, d.updated_at + interval '1 microsecond'),
      status = case when excluded.status = 'open' then d.status else excluded.status end,
      funds_withdrawn_at = coalesce(d.funds_withdrawn_at, excluded.funds_withdrawn_at),
      funds_reinstated_at = coalesce(d.funds_reinstated_at, excluded.funds_reinstated_at)`,
}

/** The events, report rows and the consumable that follow from a change. */
function effectsOf(query: Query, order: LockedOrder, dispute: Dispute, change: Change): Promise<unknown>[] {
  const revokes = change.takes && order.held_is_active === true
  const isTaken = order.is_refunded || order.is_disputed_otherwise
  const restores = change.returns && order.held_is_active === false && !isTaken
  const events = [
    ...(change.isOpened ? [disputeEvent('charge.disputed', order, dispute)] : []),
    ...(revokes ? [revokedEvent(order)] : []),
    ...(change.isWon ? [disputeEvent('charge.dispute_won', order, dispute)] : []),
    ...(restores ? [restoredEvent(order)] : []),
  ]
  const rows = [
    ...(change.isWithdrawn ? [reportRow(order, dispute, 'chargeback')] : []),
    ...(change.isReinstated ? [reportRow(order, dispute, 'chargeback_reversal')] : []),
  ]
  return [
    ...(revokes ? [revoke(query, order)] : []),
    ...(restores ? [restore(query, order)] : []),
    ...(events.length > 0 ? [writeEvents(query, order.project_id, events)] : []),
    ...(rows.length > 0 ? [addReportRows(query, rows)] : []),
  ]
}

/** The event of a dispute, numbered among those of its charge. */
function disputeEvent(type: 'charge.disputed' | 'charge.dispute_won', order: LockedOrder, dispute: Dispute): Event {
  const { order_id, external_id, profile_id } = order
  const { disputeId, amountMinor, currencyCode, status, reason, at } = dispute
  const data = {
    dispute_id: disputeId,
    order_id,
    external_id,
    dispute_status: status,
    amount: jsonAmount(formatMinor(amountMinor, currencyCode)),
    currency_code: currencyCode,
    reason,
    funds_withdrawn: dispute.fundsWithdrawn,
    opened_at: readInstant(at),
  }
  return { type, object_id: order_id, profile_id, data }
}

function reportRow(order: LockedOrder, dispute: Dispute, type: 'chargeback' | 'chargeback_reversal'): ReportRow {
  const { organization_id, external_id, order_id, psp, psp_merchant_id, region } = order
  const { currencyCode, disputeId, reason } = dispute
  const amountMinor = type === 'chargeback' ? dispute.amountMinor : dispute.reinstatedMinor
  return {
    organization_id,
    external_id,
    order_id,
    amount: formatMinor(amountMinor, currencyCode),
    amount_usd: writeUsd(toUsdMinor(amountMinor, currencyCode, order)),
    currency_code: currencyCode,
    status: type === 'chargeback' ? 'refunded' : 'succeeded',
    psp_transaction_type: type,
    psp,
    psp_merchant_id,
    psp_customer_id: null,
    region,
    payment_method_token: null,
    details: { ...noDetails, psp_transaction_id: disputeId, psp_reason_code: reason },
  }
}
