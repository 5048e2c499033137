// Makes and recognizes ids: UUIDs of version 7, and ULIDs behind a prefix.
import { hash } from 'node:crypto'
import { randomPiece } from './random.ts'

// Crockford's alphabet, in the order of ASCII, so that ids sort by the time they were made.
export const ULID_ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** A UUID of version 7 (RFC 9562): ids made later sort later, to the millisecond. */
export function makeUuid(): string {
  const bytes = randomPiece(16)
  bytes.writeUIntBE(Date.now(), 0, 6)
  return formatUuid(bytes, 7)
}

/** A UUID of version 8 (RFC 9562) that is always the same for a secret's hash, and does not reveal any of it. */
export const uuidOf = (secretHash: Buffer): string =>
  formatUuid(hash('sha256', secretHash, 'buffer').subarray(0, 16), 8)

function formatUuid(bytes: Buffer, version: number): string {
  bytes[6] = (bytes[6]! & 0x0f) | (version << 4)
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/** Whether the text is written as a UUID, of any version and in letters of any case. */
export const isUuid = (text: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)

/** A ULID behind the prefix of its kind: `trn_01JZ8Q6V9M3T0R5K7W2X4Y6Z8A`. */
export function makeRecordId(prefix: string): string {
  let rest = (BigInt(Date.now()) << 80n) | BigInt(`0x${randomPiece(10).toString('hex')}`)
  let text = ''
  for (let digit = 0; digit < 26; digit++) {
    text = ULID_ALPHABET[Number(rest & 31n)] + text
    rest >>= 5n
  }
  return `${prefix}_${text}`
}
