// Randomness for ids, by the page: one system call for some hundred of them. Keys and secrets have calls of their own.
import { randomFillSync } from 'node:crypto'

const page = Buffer.alloc(8192)
let used = page.length

/** So many random bytes, a few dozen at most, in memory of their own. */
export function randomPiece(bytes: number): Buffer {
  if (used + bytes > page.length) {
    randomFillSync(page)
    used = 0
  }
  used += bytes
  return Buffer.from(page.subarray(used - bytes, used))
}
