// Splits the bytes from PostgreSQL into messages, in reused memory.
import { Row } from './row-bytes.ts'

export interface Messages {
  /** The memory for the next bytes. */
  room(): Buffer
  /** Call it when this many bytes have arrived there. */
  came(bytes: number): void
}

// A message has a code, its length without the code, and a body; the body of a row begins with the number of columns.
const HEADER_BYTES = 5
const DATA_ROW = 0x44
const COUNT_BYTES = 2
const MEMORY_BYTES = 128 * 1024

/**
 * Passes on all messages in order: rows one by one, each valid only until `onRow` returns; the others in as few pieces as
 * possible.
 */
export function openMessages(onRow: (row: Row) => void, onOthers: (bytes: Buffer) => void): Messages {
  let memory = Buffer.allocUnsafeSlow(MEMORY_BYTES)
  const row = new Row(memory, 0, 0)
  /** How much of a message whose end has not come lies at the beginning, and how long it will be. */
  let held = 0
  let needed = HEADER_BYTES

  /** What stays behind is the beginning of a message; it goes to the beginning of memory that has room for all of it. */
  function keep(at: number, end: number): void {
    held = end - at
    if (needed > memory.length || (memory.length > MEMORY_BYTES && needed <= MEMORY_BYTES)) {
      const other = Buffer.allocUnsafeSlow(Math.max(needed, MEMORY_BYTES))
      memory.copy(other, 0, at, end)
      memory = other
    } else if (held > 0 && at > 0) memory.copyWithin(0, at, end)
  }

  return {
    room: () => memory.subarray(held),
    came(bytes) {
      const end = held + bytes
      let at = 0
      let othersAt = 0
      const hand = () => {
        // Copied, because they may be read after this memory has been reused.
        if (at > othersAt) onOthers(Buffer.from(memory.subarray(othersAt, at)))
      }
      if (end >= needed) needed = HEADER_BYTES
      while (at + needed <= end) {
        const length = 1 + memory.readUInt32BE(at + 1)
        if (at + length > end) {
          needed = length
          break
        }
        if (memory[at] === DATA_ROW) {
          hand()
          onRow(row.lie(memory, at + HEADER_BYTES + COUNT_BYTES, at + length))
          othersAt = at + length
        }
        at += length
      }
      hand()
      keep(at, end)
    },
  }
}
