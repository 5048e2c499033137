// Settles a refund: its outcome, the order's sum, the consumable, the report row and the events, in one transaction, once.
import { type Event, write as writeEvents } from '../../events/outbox.ts'
import { formatMinor } from '../../lib/money.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Query, Statement } from '../../lib/pg/types.ts'
import { noDetails, type PaymentDetails } from '../../providers/provider.ts'
import { minorFromDatabase } from '../amount.ts'
import type { Verdict } from '../charge/settle.ts'
import { revoke } from '../effects/consumable.ts'
import { addReportRows, type ReportRow } from '../effects/report-rows.ts'
import { joinRates, type Rates, toUsdMinor, writeUsd } from '../effects/usd.ts'
import { refundEvent } from './answer.ts'
import { REFUND_COLUMNS, type Refund } from './refunds.ts'

type Locked = Refund &
  Rates & {
    profile_id: string | null
    /** When all of this happens. */
    stamp: string
  }

type Outcome = Locked & { status: 'succeeded' | 'failed' }

/**
 * Settles a refund in progress by the provider's verdict, and answers it as it stands then; one that is settled already
 * stays as it is. A refund that the provider refuses for good has failed: nothing was paid back. `because` is an
 * operator's reason for a verdict of their own.
 */
export async function settle(
  db: Db,
  refund: Refund,
  verdict: Verdict,
  { because = null }: { because?: string | null } = {},
): Promise<Refund> {
  return db.tx(async (query) => {
    const currency = verdict.outcome === 'refused' ? refund.currency_code : verdict.currencyCode
    const [locked] = await query<Locked>(LOCK, [refund.organization_id, refund.refund_id, currency])
    if (!locked) throw new Error('Bug: a refund is gone')
    if (locked.status !== 'processing') return locked
    if (verdict.outcome === 'refused') return finish(query, { ...locked, status: 'failed' }, noDetails, because)
    const amount = formatMinor(verdict.amountMinor, verdict.currencyCode)
    return finish(query, { ...locked, status: verdict.outcome, amount }, verdict.details, because)
  })
}

const LOCK: Statement = {
  name: 'lock refund',
  text: `
    select ${REFUND_COLUMNS}, c.profile_id, rates.currency_per_euro, rates.usd_per_euro,
      db_clock() as stamp
    from refunds r
    join orders o on o.organization_id = r.organization_id and o.order_id = r.order_id
    join customers c on c.organization_id = o.organization_id and c.external_id = o.external_id
    ${joinRates('o.organization_id', '$3', 'r.created_at')}
    where r.organization_id = $1 and r.refund_id = $2 for no key update of o, r`,
}

/** Writes the outcome and all that follows; the report row last, for its clock stays locked. */
async function finish(
  query: Query,
  outcome: Outcome,
  details: PaymentDetails,
  because: string | null,
): Promise<Refund> {
  const { organization_id, refund_id, status, amount } = outcome
  await query(FINISH, [organization_id, refund_id, status, amount, because])
  const { refund, revoked } = status === 'succeeded' ? await payBack(query, outcome) : { refund: outcome, revoked: [] }
  await writeEvents(query, outcome.project_id, [refundEvent(refund), ...revoked])
  await addReportRows(query, organization_id, [{ ...reportRow(outcome), details }])
  return refund
}

const FINISH: Statement = {
  name: 'finish refund',
  text: `
    update refunds set status = $3, amount = $4, settled_at = db_clock(), lease_until = null, next_look_at = null,
      resolved_because = $5
    where organization_id = $1 and refund_id = $2 and status = 'processing'`,
}

/** Adds to the order's sums; when all of it is paid back and not softly, what was bought goes too. */
async function payBack(query: Query, outcome: Outcome): Promise<{ refund: Outcome; revoked: Event[] }> {
  const { organization_id, order_id, amount, soft_refund } = outcome
  const [sums] = await query<Sums>(PAY_BACK, [organization_id, order_id, amount, soft_refund === 't'])
  const revoked = sums!.is_whole === 't' ? await revoke(query, outcome) : []
  const consumable_revoked = revoked.length > 0 ? 't' : outcome.consumable_revoked
  return { refund: { ...outcome, amount_refunded: sums!.amount_refunded, consumable_revoked }, revoked }
}

type Sums = { amount_refunded: string; is_whole: 't' | 'f' }

const PAY_BACK: Statement = {
  name: 'pay back',
  text: `
    update orders set amount_refunded = amount_refunded + $3,
      amount_refunded_hard = amount_refunded_hard + case when $4 then 0 else $3 end
    where organization_id = $1 and order_id = $2
    returning amount_refunded, amount_refunded_hard = amount as is_whole`,
}

function reportRow(outcome: Outcome): Omit<ReportRow, 'details'> {
  const { external_id, order_id, amount, currency_code, status, psp, psp_merchant_id, region } = outcome
  const usdMinor = toUsdMinor(minorFromDatabase(amount, currency_code), currency_code, outcome)
  return {
    external_id,
    order_id,
    amount,
    amount_usd: writeUsd(usdMinor),
    currency_code,
    status: status === 'succeeded' ? 'refunded' : 'failed',
    psp_transaction_type: 'refund',
    psp,
    psp_merchant_id,
    region,
    payment_method_token: null,
  }
}
