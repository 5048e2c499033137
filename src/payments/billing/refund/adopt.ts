// Adopts refunds that exist at the provider and not in this database: lost by a restored backup, or made at the provider.
import { isUuid, makeUuid } from '../../../lib/ids.ts'
import { formatMinor } from '../../../lib/money.ts'
import type { Commit } from '../../../lib/pg/db.ts'
import { rowReader } from '../../../lib/pg/row-reader.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import type { RefundAtProvider } from '../../providers/provider.ts'
import { changedOf } from '../ledger/changed.ts'
import type { CustomerOrder, OrderIds } from '../ledger/orders.ts'
import { addReportRows } from '../ledger/report-rows.ts'
import type { Adoption } from '../movement/kind-of-movement.ts'
import { MAY_BE_MADE_AT } from './check.ts'
import { effectsOf, reportRow, type SettledRefund, undo } from './effects.ts'
import { lockRefund } from './settle.ts'

/** Takes over all refunds of an order, in the caller's transaction, which has locked or just settled the order. */
export async function adoptRefunds(
  query: Query,
  order: CustomerOrder,
  refunds: readonly RefundAtProvider[],
): Promise<void> {
  for (const refund of refunds) await adoptOne(query, order, refund)
}

type Known = { refund_id: string; status: string; is_ended_here: boolean }

const knownFrom = rowReader<Known>({ is_ended_here: 'boolean' })

/**
 * Brings one refund up to date with the provider. `commit` is sent with the last statements, for the organization's clock
 * is locked by then; it is left out where more follows in the transaction.
 */
export async function adoptOne(
  query: Query,
  order: CustomerOrder,
  refund: RefundAtProvider,
  commit: Commit = () => {},
): Promise<{ adoption: Adoption; refundId?: string }> {
  const { organization_id, order_id } = order
  const [locked] = await query<OrderSums>(LOCK_ORDER, [organization_id, order_id])
  if (locked?.status !== 'succeeded') return { adoption: 'mismatch' }
  const [found] = await query(FIND, [organization_id, order_id, refund.transactionId, refund.key])
  const known = found && knownFrom(found)
  if (known && !succeededDespiteOurFailure(known, refund)) {
    const adoption = await compareKnown(query, order, known, refund, commit)
    return { adoption, refundId: known.refund_id }
  }
  if (refund.status === 'failed') return { adoption: 'known' }
  if (refund.currencyCode !== locked.currency_code) return { adoption: 'mismatch' }
  const ours = refund.key === null ? await findPossible(query, order, refund) : undefined
  if (ours !== undefined) return { adoption: 'may_be_ours', refundId: ours }
  const refundId = await insert(query, order, refund)
  if (refundId === undefined) return { adoption: 'mismatch' }
  if (refund.status === 'succeeded') await succeed(query, order, refundId, refund, commit)
  return { adoption: 'adopted', refundId }
}

type OrderSums = { status: string; currency_code: string }

const LOCK_ORDER: Statement = {
  name: 'lock order to adopt refund',
  text: `select status, currency_code from orders where organization_id = $1 and order_id = $2 for no key update`,
}

// By the provider's id, or, while we do not know that, by the key that we gave it.
const FIND: Statement = {
  name: 'find refund at provider',
  text: `
    select refund_id, status,
      status = 'failed' and (provider_transaction_id is null or resolved_because is not null) as is_ended_here
    from refunds
    where organization_id = $1 and order_id = $2 and not soft_refund
      and (provider_transaction_id = $3 or provider_key = $4 and provider_transaction_id is null)
    order by status = 'failed', provider_transaction_id is null limit 1`,
}

/**
 * Whether a refund was made after all that had ended as failed: because the provider did not know it, or an operator decided so.
 * The failed one stays as it was reported; the money that moved gets another row.
 */
const succeededDespiteOurFailure = ({ is_ended_here }: Known, { status }: RefundAtProvider) =>
  is_ended_here && status !== 'failed'

/** The refund of ours in progress that this one without our key may be: its metadata may have been removed at the provider. */
async function findPossible(
  query: Query,
  { organization_id, order_id }: OrderIds,
  { amountMinor, currencyCode, at }: RefundAtProvider,
): Promise<string | undefined> {
  const amount = formatMinor(amountMinor, currencyCode)
  const [ours] = await query<{ refund_id: string }>(FIND_POSSIBLE, [organization_id, order_id, amount, at])
  return ours?.refund_id
}

const FIND_POSSIBLE: Statement = {
  name: 'find refund that one at the provider may be',
  text: `select r.refund_id from refunds r where r.organization_id = $1 and r.order_id = $2 and r.amount = $3::numeric
           and r.status = 'processing' and not r.soft_refund and not r.is_adopted and ${MAY_BE_MADE_AT('$4::timestamptz')}
         limit 1`,
}

async function compareKnown(
  query: Query,
  order: OrderIds,
  known: Known,
  refund: RefundAtProvider,
  commit: Commit,
): Promise<Adoption> {
  if (known.status === 'processing') return 'in_progress'
  if (known.status === refund.status) return 'known'
  if (known.status !== 'succeeded') return refund.status === 'succeeded' ? 'mismatch' : 'known'
  if (refund.status !== 'failed') return 'mismatch'
  await failLater(query, order, known.refund_id, refund, commit)
  return 'failed_later'
}

/**
 * Undoes a refund that had succeeded and failed after all: its own row in the report, the order's sum, `refund.failed`,
 * and a consumable that it had revoked is granted again.
 */
async function failLater(
  query: Query,
  order: OrderIds,
  refundId: string,
  { currencyCode, details }: RefundAtProvider,
  commit: Commit,
): Promise<void> {
  const locked = await lockRefund(query, { ...order, refund_id: refundId }, currencyCode)
  const { refund, writes } = await undo(query, locked)
  const written = Promise.all([
    query(FAIL_LATER, [order.organization_id, refundId]),
    ...writes,
    addReportRows(query, [reportRow(refund, details)]),
  ])
  commit()
  await written
}

const FAIL_LATER: Statement = {
  name: 'fail refund later',
  text: `update refunds set status = 'failed', failed_later_at = db_clock(), updated_at = ${changedOf('refunds')}
         where organization_id = $1 and refund_id = $2 and status = 'succeeded'`,
}

/**
 * Makes the row, succeeded or in progress. Undefined: refunds that moved money would add up to more than the charge. Soft refunds do
 * not count here, for the provider does not know of them.
 */
async function insert(
  query: Query,
  { organization_id, order_id, external_id }: CustomerOrder,
  { key, reference, transactionId, status, amountMinor, currencyCode, details }: RefundAtProvider,
): Promise<string | undefined> {
  const id = reference !== null && isUuid(reference) ? reference.toLowerCase() : makeUuid()
  const [made] = await query<{ refund_id: string }>(INSERT, [
    ...[organization_id, id, makeUuid(), order_id, external_id, formatMinor(amountMinor, currencyCode), currencyCode],
    ...[key ?? transactionId, key === null ? 'provider' : 'tundish', transactionId, details.psp_reason_code ?? ''],
    status === 'succeeded',
  ])
  return made?.refund_id
}

// The id that it had here before, unless another refund has it.
const INSERT: Statement = {
  name: 'adopt refund',
  text: `
    insert into refunds (organization_id, refund_id, order_id, external_id, amount, amount_given, currency_code,
      provider_key, origin, is_adopted, provider_transaction_id, reason, created_at, status, settled_at, updated_at,
      next_look_at)
    select $1, case when exists (select from refunds r where r.organization_id = $1 and r.refund_id = $2) then $3::uuid
        else $2::uuid end,
      $4, $5, $6, true, $7, $8, $9, true, $10, $11, t.now,
      case when $12::boolean then 'succeeded' else 'processing' end,
      case when $12::boolean then t.now end, case when $12::boolean then begin_write(o.project_id) end,
      case when not $12::boolean then t.now + interval '1 hour' end
    from (select db_clock() as now) t, orders o
    where o.organization_id = $1 and o.order_id = $4 and o.amount_refunded_hard + $6::numeric <= o.amount
    on conflict do nothing
    returning refund_id`,
}

/** Writes what follows from a row that was made as succeeded. */
async function succeed(
  query: Query,
  order: OrderIds,
  refundId: string,
  { currencyCode, details }: RefundAtProvider,
  commit: Commit,
): Promise<void> {
  const locked = await lockRefund(query, { ...order, refund_id: refundId }, currencyCode)
  const outcome: SettledRefund = { ...locked, status: 'succeeded' }
  const { writes } = await effectsOf(query, outcome)
  const written = Promise.all([...writes, addReportRows(query, [reportRow(outcome, details)])])
  commit()
  await written
}
