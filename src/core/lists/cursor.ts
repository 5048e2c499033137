// Cursors: the position in a walk, its total and its horizon, bound to one tenant's list and filters.
import { hash } from 'node:crypto'
import { ApiError } from '../../lib/errors.ts'
import { instantFromMicros, isInRange, microsFromInstant } from '../../lib/time.ts'

/** The position of a walk. Instants are canonical date-times. */
export interface Position {
  /** `created_at` or `updated_at` of the last item served, whichever orders the walk. */
  at: string
  id: string
  /** Counted when the walk began. */
  total: number
  /** The sync horizon of the walk's first page, in a walk by `updated_at`. */
  horizon?: string
  /**
   * With replicas: the position of the database's log when the walk began. No later page may be read from an older state.
   */
  mark?: bigint
}

const CHECK_BYTES = 9
const HEAD_BYTES = 24
const MARK_BYTES = 8
const NO_HORIZON = -(2n ** 63n)
// Added to the total: a mark follows the head.
const MARKED = 2n ** 62n

/**
 * The cursor of a position: URL-safe, at most 256 characters. `binding` identifies the walk (tenant, list, filters): a
 * cursor is valid only unchanged and with the binding it was made with.
 */
export function writeCursor(position: Position, binding: string): string {
  const { mark } = position
  const head = Buffer.alloc(mark === undefined ? HEAD_BYTES : HEAD_BYTES + MARK_BYTES)
  head.writeBigInt64BE(microsFromInstant(position.at), 0)
  head.writeBigInt64BE(position.horizon === undefined ? NO_HORIZON : microsFromInstant(position.horizon), 8)
  head.writeBigInt64BE(BigInt(position.total) + (mark === undefined ? 0n : MARKED), 16)
  if (mark !== undefined) head.writeBigInt64BE(mark, HEAD_BYTES)
  const payload = Buffer.concat([head, Buffer.from(position.id, 'latin1')])
  return Buffer.concat([check(payload, binding, mark !== undefined), payload]).toString('base64url')
}

/** The position in a cursor, or undefined when it is not one of ours for this binding. */
export function readCursor(cursor: string, binding: string): Position | undefined {
  if (!/^[A-Za-z0-9_-]{46,256}$/.test(cursor)) return undefined
  const bytes = Buffer.from(cursor, 'base64url')
  const payload = bytes.subarray(CHECK_BYTES)
  const total = payload.readBigInt64BE(16)
  const marked = total >= MARKED
  // The last character has spare bits: only the canonical form is accepted.
  if (!check(payload, binding, marked).equals(bytes.subarray(0, CHECK_BYTES)) || bytes.toString('base64url') !== cursor)
    return undefined
  return positionOf(payload, marked ? total - MARKED : total, marked)
}

/** The 400 for a cursor that `readCursor` does not accept; `or` ends the sentence with what else is accepted. */
export const invalidCursor = (or = '') =>
  new ApiError(
    400,
    'invalid_cursor',
    `cursor must be a next_cursor of this list with the same filters, unchanged${or}.`,
  )

/** The JSON of a page after its items. `next` is the cursor of the next page, if there is one. */
export function afterItems(total: number, next: string | undefined): string {
  const cursor = next === undefined ? '' : `,"next_cursor":"${next}","cursor":"${next}"`
  return `],"pagination":{"has_more":${next !== undefined},"total":${total}${cursor}}}`
}

/**
 * The position in the payload; undefined for values that are never written: the checksum is no signature and can be forged.
 */
function positionOf(payload: Buffer, total: bigint, marked: boolean): Position | undefined {
  const at = payload.readBigInt64BE(0)
  const horizon = payload.readBigInt64BE(8)
  const id = payload.toString('latin1', marked ? HEAD_BYTES + MARK_BYTES : HEAD_BYTES)
  const isOurs = total >= 0n && total <= Number.MAX_SAFE_INTEGER && !id.includes('\0')
  if (!isOurs || !isInRange(at) || !(horizon === NO_HORIZON || isInRange(horizon))) return undefined
  return {
    at: instantFromMicros(at),
    id,
    total: Number(total),
    horizon: horizon === NO_HORIZON ? undefined : instantFromMicros(horizon),
    mark: marked ? payload.readBigInt64BE(HEAD_BYTES) : undefined,
  }
}

// An older program, which does not know marks, refuses a cursor that has one.
function check(payload: Uint8Array, binding: string, marked: boolean): Buffer {
  const bound = Buffer.from(binding + (marked ? '\r' : '\n'))
  return hash('sha256', Buffer.concat([bound, payload]), 'buffer').subarray(0, CHECK_BYTES)
}
