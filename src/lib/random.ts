// Random bytes for ids, buffered: one system call for some hundred of them. Keys and secrets are not buffered.
import { randomFillSync } from 'node:crypto'

const page = Buffer.alloc(8192)
let used = page.length

/** This many random bytes, a few dozen at most, copied from the buffer. */
export function randomPiece(bytes: number): Buffer {
  if (used + bytes > page.length) {
    randomFillSync(page)
    used = 0
  }
  used += bytes
  return Buffer.from(page.subarray(used - bytes, used))
}
