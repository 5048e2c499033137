// The provider's idempotency keys, derived from the caller's keys, and the refusal of a key that was used for something else.
import { createHash } from 'node:crypto'
import { ApiError } from '../../../lib/errors.ts'

/**
 * The provider's key of a movement. It is derived from what the caller sent, not from anything we store, so that a retry
 * after a restored backup finds the movement that the backup does not have. JSON separates the parts: two different lists
 * never have the same text.
 */
export function providerKey(...parts: string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

/** The refusal of a key that was used for something else. */
export function keyReused(what: string): ApiError {
  return new ApiError(
    400,
    'idempotency_key_reused',
    `idempotency_key was used for ${what} before. Nothing was done: each purchase or refund needs its own key.`,
    {
      extra: { code: 'idempotency_key_reused' },
    },
  )
}
