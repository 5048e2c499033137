// The body of a refund, read exactly.
import type { RefundLimits } from '../../../core/tenants/access.ts'
import { ApiError } from '../../../lib/errors.ts'
import type { JsonNumber, JsonObject } from '../../../lib/json/read.ts'
import type { Decimal } from '../../../lib/money.ts'
import { Type } from '../../../lib/shape/schema.ts'
import { amountIn, externalId, idempotencyKey, notPositive, readAmountField, uuidIn } from '../body.ts'

export const refundIn = Type.Named('RefundIn', {
  external_id: externalId,
  order_id: uuidIn('Order of the charge to refund.'),
  amount: Type.Optional(
    amountIn(
      'Amount in major units. If it is left out, all that is left of the charge is refunded. With an amount, `idempotency_key` is required.',
    ),
  ),
  soft_refund: Type.Optional(
    Type.Boolean({
      description:
        'Whether it is a soft refund, which moves no money and never revokes the consumable, and counts in `amount_refunded`.',
      default: false,
    }),
  ),
  reason: Type.Optional(
    Type.String({
      description: 'Reason of the refund. The billing API does not return it.',
      maxLength: 256,
      default: '',
    }),
  ),
  comment: Type.Optional(
    Type.String({
      description: 'Note on the refund. The billing API does not return it.',
      maxLength: 2048,
      default: '',
    }),
  ),
  idempotency_key: Type.Optional(idempotencyKey),
})

export interface RefundRequest {
  externalId: string
  orderId: string
  /** Undefined: all that is left. */
  amount: Decimal | undefined
  /** The same as it was sent, for error sentences. */
  amountSent: string | number | JsonNumber | undefined
  isSoft: boolean
  reason: string
  comment: string
  idempotencyKey: string | null
  /** The most that the operator who asks may refund of one charge, by currency. */
  limits?: RefundLimits | null
}

/** Reads a body that is valid for `refundIn`, with the text of its numbers. Throws a 400. */
export function readRefundRequest(body: JsonObject): RefundRequest {
  const { external_id, order_id, reason = '', comment = '', idempotency_key } = body as Record<string, string>
  const amountSent = body.amount as string | number | JsonNumber | undefined
  if (amountSent !== undefined && idempotency_key === undefined) {
    throw new ApiError(
      400,
      'idempotency_key_required',
      'idempotency_key is required with an amount: a partial refund sent twice would pay twice.',
    )
  }
  const amount = amountSent === undefined ? undefined : readAmountField(amountSent)
  if (amount && amount.digits <= 0n) throw notPositive(amountSent)
  return {
    externalId: external_id!,
    orderId: order_id!.toLowerCase(),
    amount,
    amountSent,
    isSoft: body.soft_refund === true,
    reason,
    comment,
    idempotencyKey: idempotency_key ?? null,
  }
}
