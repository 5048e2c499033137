// Cursors: the place in a walk, its total and its horizon, bound to one tenant's list and filters.
import { createHash } from 'node:crypto'
import { instantFromMicros, microsFromInstant } from './time.ts'

/** Where a walk stands. Instants are canonical date-times. */
export interface Position {
  /** `created_at` or `updated_at` of the last item served, whichever orders the walk. */
  at: string
  id: string
  /** Counted when the walk began. */
  total: number
  /** The sync horizon of the walk's first page, in a walk by `updated_at`. */
  horizon?: string
}

const CHECK_BYTES = 9
const NO_HORIZON = -(2n ** 63n)

/**
 * The cursor of a position: URL-safe, at most 130 characters. `binding` names all that the walk depends on (tenant, list, filters):
 * a cursor opens only with the binding it was made with, and only unchanged.
 */
export function writeCursor(position: Position, binding: string): string {
  const head = Buffer.alloc(24)
  head.writeBigInt64BE(microsFromInstant(position.at), 0)
  head.writeBigInt64BE(position.horizon === undefined ? NO_HORIZON : microsFromInstant(position.horizon), 8)
  head.writeBigInt64BE(BigInt(position.total), 16)
  const payload = Buffer.concat([head, Buffer.from(position.id, 'latin1')])
  return Buffer.concat([check(payload, binding), payload]).toString('base64url')
}

/** The position in a cursor, or undefined when it is not one of ours for this binding. */
export function readCursor(cursor: string, binding: string): Position | undefined {
  if (!/^[A-Za-z0-9_-]{46,130}$/.test(cursor)) return undefined
  const bytes = Buffer.from(cursor, 'base64url')
  const payload = bytes.subarray(CHECK_BYTES)
  // The last character has spare bits: only the form we write is ours.
  if (!check(payload, binding).equals(bytes.subarray(0, CHECK_BYTES)) || bytes.toString('base64url') !== cursor)
    return undefined
  const horizon = payload.readBigInt64BE(8)
  return {
    at: instantFromMicros(payload.readBigInt64BE(0)),
    id: payload.toString('latin1', 24),
    total: Number(payload.readBigInt64BE(16)),
    horizon: horizon === NO_HORIZON ? undefined : instantFromMicros(horizon),
  }
}

function check(payload: Uint8Array, binding: string): Buffer {
  return createHash('sha256').update(binding).update('\n').update(payload).digest().subarray(0, CHECK_BYTES)
}
