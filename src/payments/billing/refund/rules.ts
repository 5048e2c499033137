// The rules of a refund: which order may be refunded, and which amount.
import type { RefundLimits } from '../../../core/tenants/access.ts'
import { ApiError } from '../../../lib/errors.ts'
import { formatMinor, toMinor, tooManyDecimals } from '../../../lib/money.ts'
import { rowReader } from '../../../lib/pg/row-reader.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import { minorFromDatabase } from '../amount.ts'
import { amountRefused } from '../body.ts'
import { hasUnlisted } from '../movement/unlisted.ts'
import type { RefundRequest } from './request.ts'

/** The columns of the order to refund that the rules need. */
export type Refundable = {
  status: string
  amount: string
  currency_code: string
  amount_refunded: string
  psp: string
  psp_merchant_id: string | null
  in_progress: boolean
  /** The provider's id of the charge; null when an operator settled the charge. */
  charge_transaction_id: string | null
  /** Whether the provider may have refunds of the charge that were lost here. */
  may_lack_refunds: boolean
}

const refundableFrom = rowReader<Refundable>({ in_progress: 'boolean', may_lack_refunds: 'boolean' })

/** The order, if it is this customer's and was charged here. Throws a 400. */
export async function findRefundable(
  query: Query,
  organizationId: string,
  { orderId, externalId }: RefundRequest,
): Promise<Refundable> {
  const [order] = await query(FIND_REFUNDABLE, [organizationId, orderId, externalId])
  if (order) return refundableFrom(order)
  const [imported] = await query(FIND_IMPORTED, [organizationId, orderId, externalId])
  if (imported) {
    throw new ApiError(
      400,
      'order_not_charged_here',
      `The order "${orderId}" was not charged through Tundish: refund it where it was charged.`,
    )
  }
  throw new ApiError(400, 'unknown_order', `The customer has no order "${orderId}".`)
}

const FIND_REFUNDABLE: Statement = {
  name: 'find refundable',
  text: `
    select o.status, o.amount, o.currency_code, o.amount_refunded, o.psp, o.psp_merchant_id, o.charge_transaction_id,
      exists (select from refunds r where r.organization_id = $1 and r.order_id = $2 and r.status = 'processing')
        as in_progress,
      ${hasUnlisted('o.organization_id')} or exists (select from lost_movements l where l.organization_id = $1
        and l.type = 'refund' and l.charge_transaction_id = o.charge_transaction_id
        and not exists (select from refunds r where r.organization_id = $1 and r.order_id = $2
          and (r.provider_transaction_id = l.transaction_id or r.provider_key = l.provider_key))) as may_lack_refunds
    from orders o where o.organization_id = $1 and o.order_id = $2 and o.external_id = $3`,
}

const FIND_IMPORTED: Statement = {
  name: 'find imported payment',
  text: 'select 1 from report_transactions where organization_id = $1 and order_id = $2 and external_id = $3 limit 1',
}

/** The amount to pay back, in major units with all decimals. Throws a 400 for the first rule that is broken. */
export function allow(order: Refundable, { amount, amountSent, orderId, isSoft, limits }: RefundRequest): string {
  const { currency_code } = order
  const refuse = (code: string, sentence: string) => new ApiError(400, code, sentence)
  if (order.status !== 'succeeded')
    throw refuse(
      'order_not_succeeded',
      `Only a charge that succeeded can be refunded: order "${orderId}" is ${order.status}.`,
    )
  const minor = amount && toMinor(amount, currency_code)
  if (amount && minor === undefined)
    throw amountRefused('amount_too_many_decimals', tooManyDecimals(currency_code), amountSent)
  const left = minorFromDatabase(order.amount, currency_code) - minorFromDatabase(order.amount_refunded, currency_code)
  if (left === 0n)
    throw refuse('nothing_left_to_refund', 'Nothing is left to refund: the whole charge was refunded before.')
  if ((minor ?? 0n) > left) {
    const most = `${formatMinor(left, currency_code)} ${currency_code}`
    throw amountRefused('amount_above_what_is_left', `must be at most ${most}, what is left of the charge`, amountSent)
  }
  if (order.in_progress) throw refuse('refund_in_progress', 'Another refund of this order is in progress.')
  if (order.charge_transaction_id === null && !isSoft) {
    throw refuse(
      'charge_reference_unknown',
      'The provider’s id of this charge is not known: refund it at the provider.',
    )
  }
  if (limits) checkLimit(order, minor ?? left, limits)
  return formatMinor(minor ?? left, currency_code)
}

/** Together with what was refunded of the charge before, so that several refunds do not pass the limit either. Throws a 403. */
function checkLimit({ currency_code, amount_refunded }: Refundable, minor: bigint, limits: RefundLimits): void {
  const limit = limits[currency_code]
  if (limit === undefined)
    throw new ApiError(403, 'refund_above_limit', `You may not refund charges in ${currency_code}.`)
  const before = minorFromDatabase(amount_refunded, currency_code)
  if (minor + before <= minorFromDatabase(limit, currency_code)) return
  const refunded = before > 0n ? `, and ${formatMinor(before, currency_code)} were refunded before` : ''
  throw new ApiError(
    403,
    'refund_above_limit',
    `You may refund at most ${limit} ${currency_code} of one charge${refunded}.`,
  )
}
