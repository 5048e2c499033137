// Ids of the demo's records, the same at every start.
import { ULID_ALPHABET } from '../../lib/ids.ts'
import type { Random } from '../../lib/seeded-random.ts'

/** A ULID of that instant behind a prefix. */
export function recordId(random: Random, prefix: string, ms: number): string {
  let time = ''
  for (let rest = ms, digit = 0; digit < 10; digit += 1, rest = Math.floor(rest / 32))
    time = ULID_ALPHABET[rest % 32] + time
  let chance = ''
  for (let digit = 0; digit < 16; digit += 1) chance += ULID_ALPHABET[random.integer(0, 31)]
  return `${prefix}_${time}${chance}`
}

/** A UUID of version 7 of that instant. */
export function uuid(random: Random, ms: number): string {
  const digits = (n: number) => Array.from({ length: n }, () => random.integer(0, 15).toString(16)).join('')
  const time = ms.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${digits(3)}-${random.pick(['8', '9', 'a', 'b'])}${digits(3)}-${digits(12)}`
}
