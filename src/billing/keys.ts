// The two keys of every movement of money: the caller's, which it may send again, and the provider's, which follows from it.
import { createHash } from 'node:crypto'
import { ApiError } from '../lib/errors.ts'

/**
 * What the provider knows a charge by. It follows from what the caller sent, not from anything we store, so that a retry
 * after a restored backup meets the charge that the backup does not know.
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

/** JSON keeps the parts apart: no two lists of parts have the same text. */
function sha256(...parts: string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

/** The refusal of a key that stands for something else already. */
export function keyReused(what: string): ApiError {
  return new ApiError(
    400,
    'idempotency_key_reused',
    `This idempotency_key was used for ${what} before: nothing was done. Use one key per intent.`,
    {
      extra: { code: 'idempotency_key_reused' },
    },
  )
}
