// The provider's idempotency keys of charges and refunds, derived from the caller's keys.
import { createHash } from 'node:crypto'
import { ApiError } from '../../../lib/errors.ts'

/**
 * The provider's key of a charge. It is derived from what the caller sent, not from anything we store, so that a retry
 * after a restored backup finds the charge that the backup does not have.
 */
export function chargeKey(organizationId: string, externalId: string, idempotencyKey: string): string {
  return sha256(organizationId, externalId, idempotencyKey)
}

/** The same for a refund with a key of the caller's. */
export function refundKey(organizationId: string, externalId: string, idempotencyKey: string): string {
  return sha256(organizationId, externalId, 'refund', idempotencyKey)
}

/** The same for a refund of all that is left, which needs no key: the order's n-th refund. */
export function nthRefundKey(organizationId: string, orderId: string, n: number): string {
  return sha256(organizationId, orderId, 'refund', String(n), '')
}

/** JSON separates the parts: two different lists never have the same text. */
function sha256(...parts: string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

/** The refusal of a key that was used for something else. */
export function keyReused(what: string): ApiError {
  return new ApiError(
    400,
    'idempotency_key_reused',
    `idempotency_key was used for ${what} before. Nothing was done: each purchase or refund needs a key of its own.`,
    {
      extra: { code: 'idempotency_key_reused' },
    },
  )
}
