// A row as sent by PostgreSQL: the bytes of its columns, decoded to strings only on request.

// Each value is preceded by its length in four bytes. A null has the length -1 and no bytes.
const LENGTH_BYTES = 4
const NULL_LENGTH = -1

/** Receives a row, which is valid only until the function returns. */
export type TakeRow = (row: Row) => void

/** The columns are in `bytes` from `at` to `end`, each preceded by its length. */
export class Row {
  bytes: Buffer
  at: number
  end: number

  constructor(bytes: Buffer, at: number, end: number) {
    this.bytes = bytes
    this.at = at
    this.end = end
  }

  /** Points this object at another row, so that one object serves many rows. */
  moveTo(bytes: Buffer, at: number, end: number): this {
    this.bytes = bytes
    this.at = at
    this.end = end
    return this
  }

  /** A copy of the row in its own memory. */
  copy(): Row {
    const bytes = Buffer.from(this.bytes.subarray(this.at, this.end))
    return new Row(bytes, 0, bytes.length)
  }

  /** The text of a column: booleans `t`/`f`, times `2026-01-31 23:59:59.123456+00`. */
  text(column: number): string | null {
    const at = this.place(column)
    const length = lengthAt(this.bytes, at)
    if (length === NULL_LENGTH) return null
    return this.bytes.toString('utf8', at + LENGTH_BYTES, at + LENGTH_BYTES + length)
  }

  /** The texts of all columns. */
  texts(): (string | null)[] {
    const texts: (string | null)[] = []
    for (let at = this.at; at < this.end; ) {
      const length = lengthAt(this.bytes, at)
      at += LENGTH_BYTES
      texts.push(length === NULL_LENGTH ? null : this.bytes.toString('utf8', at, at + length))
      if (length > 0) at += length
    }
    return texts
  }

  /** The offset of a column, at its length. */
  place(column: number): number {
    let at = this.at
    for (let n = 0; n < column; n += 1) at += LENGTH_BYTES + Math.max(0, lengthAt(this.bytes, at))
    if (at >= this.end) throw new Error(`Bug: the row has no column ${column}.`)
    return at
  }
}

/** Reads the length at this offset; -1 for a null. */
export function lengthAt(bytes: Buffer, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!
}

/** The bytes of a `bytea` as PostgreSQL writes it: `\x` and hex digits. */
export function bytesFromPg(text: string): Buffer {
  return Buffer.from(text.slice(2), 'hex')
}

/** A row made from texts. */
export function packRow(values: readonly (string | null)[]): Row {
  let size = 0
  for (const value of values) size += LENGTH_BYTES + (value === null ? 0 : Buffer.byteLength(value))
  const bytes = Buffer.allocUnsafe(size)
  let at = 0
  for (const value of values) {
    const length = value === null ? 0 : bytes.write(value, at + LENGTH_BYTES)
    bytes.writeInt32BE(value === null ? NULL_LENGTH : length, at)
    at += LENGTH_BYTES + length
  }
  return new Row(bytes, 0, size)
}
