// JSON under construction: bytes in one piece of memory, which serves again once they have been sent.

// Pieces are as long as a power of two, at least this one; those up to the second serve again, others are given up.
const FIRST_BYTES = 16 * 1024
const MOST_KEPT_BYTES = 2 * 1024 * 1024
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
  if (length > MOST_KEPT_BYTES || keptBytes + length > ALL_KEPT_BYTES) return
  const alike = kept.get(length)
  if (alike) alike.push(memory)
  else kept.set(length, [memory])
  keptBytes += length
}

/**
 * Memory of this size lies outside the heap, and the more of it is given up the more often all of the heap is searched for
 * garbage. So the sender frees the bytes; when that is forgotten they are ordinary garbage.
 */
export class JsonBytes {
  /** Written from 0 to `length`; reserve room before writing more. */
  bytes = borrow(FIRST_BYTES)
  length = 0

  /** Makes room for so many more bytes. */
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
    // What is written behind the end of a buffer is lost without a word.
    if (this.length > this.bytes.length) throw new Error('Bug: the JSON is longer than its room.')
    return this.bytes.subarray(0, this.length)
  }

  toString(): string {
    return this.written().toString()
  }

  /** Frees the bytes, which must not be read any more. To be called once at most. */
  free(): void {
    giveBack(this.bytes)
  }
}
