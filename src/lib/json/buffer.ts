// A buffer for building JSON, whose memory is reused once the bytes have been sent.

// Buffers have a power of two as their size, at least the first of these; up to the second they are reused.
const FIRST_BYTES = 16 * 1024
const MAX_KEPT_BYTES = 2 * 1024 * 1024
const ALL_KEPT_BYTES = 8 * 1024 * 1024

/** By their length. */
const kept = new Map<number, Buffer[]>()
let keptBytes = 0

function borrow(atLeast: number): Buffer {
  let length = FIRST_BYTES
  while (length < atLeast) length *= 2
  const memory = kept.get(length)?.pop()
  if (!memory) return Buffer.allocUnsafeSlow(length)
  keptBytes -= length
  return memory
}

function giveBack(memory: Buffer): void {
  const { length } = memory
  if (length > MAX_KEPT_BYTES || keptBytes + length > ALL_KEPT_BYTES) return
  const alike = kept.get(length)
  if (alike) alike.push(memory)
  else kept.set(length, [memory])
  keptBytes += length
}

/**
 * Memory of this size is outside the heap, and discarding it often causes major garbage collections. So the sender frees the
 * bytes for reuse; if that is forgotten they are ordinary garbage.
 */
export class JsonBytes {
  /** Written from 0 to `length`; reserve room before writing more. */
  bytes = borrow(FIRST_BYTES)
  length = 0

  /** Reserves room for this many more bytes. */
  reserve(more: number): void {
    if (this.length + more <= this.bytes.length) return
    const outgrown = this.bytes
    this.bytes = borrow(this.length + more)
    outgrown.copy(this.bytes, 0, 0, this.length)
    giveBack(outgrown)
  }

  /** Appends a text as it is. */
  raw(text: string): this {
    // A UTF-16 unit is at most three bytes of UTF-8.
    this.reserve(text.length * 3)
    this.length += this.bytes.write(text, this.length)
    return this
  }

  /** What is written so far, until it is freed. */
  written(): Buffer {
    // Writes behind the end of a buffer are lost silently.
    if (this.length > this.bytes.length) throw new Error('Bug: the JSON is longer than its room.')
    return this.bytes.subarray(0, this.length)
  }

  toString(): string {
    return this.written().toString()
  }

  /** Frees the bytes, which must no longer be read. To be called once at most. */
  free(): void {
    giveBack(this.bytes)
  }
}
