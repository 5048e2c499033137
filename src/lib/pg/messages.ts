// Splits the bytes received from PostgreSQL into messages, in a reused buffer.
import { Row } from './row-bytes.ts'

export interface Messages {
  /** The buffer for the next received bytes. */
  room(): Buffer
  /** To be called when this many bytes were received into the buffer. */
  received(bytes: number): void
}

// A message has a code, its length without the code, and a body; the body of a row begins with the number of columns.
const HEADER_BYTES = 5
const DATA_ROW = 0x44
const COUNT_BYTES = 2
const MEMORY_BYTES = 128 * 1024

/**
 * Passes on all messages in order: each row to `onRow`, valid only until that returns, and the bytes of all other messages
 * to `onOthers`, in as few pieces as possible.
 */
export function openMessages(onRow: (row: Row) => void, onOthers: (bytes: Buffer) => void): Messages {
  let memory = Buffer.allocUnsafeSlow(MEMORY_BYTES)
  const row = new Row(memory, 0, 0)
  /** The number of bytes of an incomplete message at the start of the buffer. */
  let held = 0
  /** The number of bytes of it that must have arrived before it can be read further. */
  let needed = HEADER_BYTES

  /** Moves an incomplete message to the start of the buffer, or of another buffer if it would not fit. */
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
    received(bytes) {
      const end = held + bytes
      let at = 0
      let othersAt = 0
      const passOthersOn = () => {
        // Copied, because the receiver may read them after this buffer has been reused.
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
          passOthersOn()
          onRow(row.moveTo(memory, at + HEADER_BYTES + COUNT_BYTES, at + length))
          othersAt = at + length
        }
        at += length
      }
      passOthersOn()
      keep(at, end)
    },
  }
}
