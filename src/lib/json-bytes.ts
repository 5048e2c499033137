// JSON under construction: bytes in one piece of memory, which serves again once they have been sent.

const FIRST_BYTES = 16 * 1024
// A larger piece goes back to the system when it was used; the others are kept up to this sum.
const MOST_KEPT_BYTES = 2 * 1024 * 1024
const ALL_KEPT_BYTES = 8 * 1024 * 1024

const kept: Buffer[] = []
let keptBytes = 0

function borrow(): Buffer {
  const memory = kept.pop()
  if (!memory) return Buffer.allocUnsafeSlow(FIRST_BYTES)
  keptBytes -= memory.length
  return memory
}

/**
 * Memory of this size lies outside the heap, and the more of it is given up the more often all of the heap is searched for
 * garbage. So whoever has sent the bytes frees them; when that is forgotten they are garbage like any other.
 */
export class JsonBytes {
  /** What is written lies in it from 0 to `length`; whoever writes more reserves room first. */
  bytes = borrow()
  length = 0

  /** Makes room for so many more bytes. */
  reserve(more: number): void {
    if (this.length + more <= this.bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(this.length + more, this.bytes.length * 2))
    this.bytes.copy(larger, 0, 0, this.length)
    this.bytes = larger
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

  /** Nobody reads the bytes any more. To be called once at most. */
  free(): void {
    const memory = this.bytes
    if (memory.length > MOST_KEPT_BYTES || keptBytes + memory.length > ALL_KEPT_BYTES) return
    kept.push(memory)
    keptBytes += memory.length
  }
}
