// The response for a refund, and the data of its events.
import type { Event } from '../../../core/events/outbox.ts'
import { formatMinor } from '../../../lib/money.ts'
import { Type } from '../../../lib/shape/schema.ts'
import { jsonAmount, minorFromDatabase } from '../amount.ts'
import { uuidIn } from '../body.ts'
import type { Refund } from './row.ts'

export const refundOut = Type.Named('RefundOut', {
  refund_id: uuidIn('Identifier of the refund.'),
  order_id: uuidIn('Order of the charge.'),
  refund_status: Type.String({
    enum: ['processing', 'succeeded', 'failed'],
    examples: ['succeeded'],
    description:
      '`processing`: the outcome is not known yet, and will be looked up. A refund that succeeded can still fail later, with the event `refund.failed`.',
  }),
  amount: Type.Number({ description: 'Amount of this refund, in major units.', examples: [10.5] }),
  currency_code: Type.String({ description: 'ISO 4217 code.', examples: ['USD'] }),
  amount_refunded: Type.Number({
    description: 'Sum of all refunds of the order that succeeded, at most its amount.',
    examples: [10.5],
  }),
  consumable_revoked: Type.Boolean({
    description: 'Whether the consumable is revoked, because refunds that are not soft add up to the whole amount.',
  }),
  idempotent_replay: Type.Boolean({ description: 'Whether this is an earlier refund with the same key.' }),
})

export function refundResponse(refund: Refund, idempotent_replay: boolean) {
  const { refund_id, order_id, status, amount, currency_code, amount_refunded, consumable_revoked } = refund
  return {
    refund_id,
    order_id,
    refund_status: status,
    amount: jsonAmount(amount),
    currency_code,
    // The database's zero has no decimals.
    amount_refunded: jsonAmount(formatMinor(minorFromDatabase(amount_refunded, currency_code), currency_code)),
    consumable_revoked,
    idempotent_replay,
  }
}

/** The event of a settled refund. */
export function refundEvent(refund: Refund & { status: 'succeeded' | 'failed'; profile_id: string | null }): Event {
  const { refund_id, status, profile_id } = refund
  return { type: `refund.${status}`, object_id: refund_id, profile_id, data: refundResponse(refund, false) }
}
