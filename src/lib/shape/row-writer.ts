// Turns the bytes of a row into the bytes of its JSON without intermediate strings.
import type { JsonBytes } from '../json/buffer.ts'
import { lengthAt, type Row } from '../pg/row-bytes.ts'

/** How a column's text becomes JSON. */
export type Kind = 'text' | 'instant' | 'integer' | 'decimal' | 'boolean' | 'json'

/** One step of writing a row: the text before the value, and the value. */
export type Step = { prefix: Buffer } & (
  | { kind: Kind }
  /** An object that is null if its first column is: then this many columns and steps are skipped. */
  | { kind: 'object'; columns: number; steps: number }
  /** No value: the end of an object that may be null. */
  | { kind: 'end' }
)

/** Appends a row's JSON; skips the first `offset` columns. */
export type WriteRow = (out: JsonBytes, row: Row, offset: number) => void

export function rowWriter(steps: readonly Step[]): WriteRow {
  // Without escaping, the JSON of a value is at most this many bytes longer than the value.
  const more = steps.reduce((sum, { prefix }) => sum + prefix.length + MAX_BYTES_BESIDE_PREFIX, 0)
  return (out, row, offset) => {
    out.reserve(row.end - row.at + more)
    writeRow(steps, more, out, row, row.place(offset))
  }
}

// Quotes, and the zeros that PostgreSQL drops from a time; "false" for "f" and "null" need less.
const MAX_BYTES_BESIDE_PREFIX = 16
const NULL = Buffer.from('null')
const TRUE = Buffer.from('true')
const FALSE = Buffer.from('false')
const QUOTE = 0x22
const BACKSLASH = 0x5c
const FIRST_PRINTABLE = 0x20
const SMALL_T = 0x74

function writeRow(steps: readonly Step[], more: number, out: JsonBytes, row: Row, place: number): void {
  const { bytes, end } = row
  let at = place
  for (let n = 0; n < steps.length; n += 1) {
    const step = steps[n]!
    append(out, step.prefix)
    if (step.kind === 'end') continue
    if (at >= end) throw new Error(`Bug: the row ends before its step ${n}.`)
    const length = lengthAt(bytes, at)
    if (step.kind === 'object') {
      if (length >= 0) continue
      append(out, NULL)
      for (let column = 0; column < step.columns; column += 1) at += 4 + Math.max(0, lengthAt(bytes, at))
      n += step.steps
      continue
    }
    at += 4
    if (length < 0) {
      append(out, NULL)
      continue
    }
    if (step.kind === 'text') writeText(out, bytes, at, at + length, end - at + more)
    else if (step.kind === 'instant') writeInstant(out, bytes, at, length)
    else if (step.kind === 'boolean') append(out, bytes[at] === SMALL_T ? TRUE : FALSE)
    else copy(out, bytes, at, at + length)
    at += length
  }
}

// Below this length a loop copies faster than a call.
const SHORT = 64

function copy(out: JsonBytes, from: Buffer, start: number, end: number): void {
  const { bytes } = out
  let to = out.length
  if (end - start > SHORT) to += from.copy(bytes, to, start, end)
  else for (let at = start; at < end; at += 1) bytes[to++] = from[at]!
  out.length = to
}

function append(out: JsonBytes, piece: Buffer): void {
  copy(out, piece, 0, piece.length)
}

/** Writes the text as a JSON string: PostgreSQL's UTF-8 unchanged, except quotes, backslashes and control characters. */
function writeText(out: JsonBytes, from: Buffer, start: number, end: number, rest: number): void {
  const { bytes } = out
  let to = out.length
  bytes[to++] = QUOTE
  for (let at = start; at < end; at += 1) {
    const byte = from[at]!
    if (byte < FIRST_PRINTABLE || byte === QUOTE || byte === BACKSLASH) {
      escapeText(out, from.toString('utf8', start, end), rest)
      return
    }
    bytes[to++] = byte
  }
  bytes[to++] = QUOTE
  out.length = to
}

/** Rarely needed. `rest` bytes stay reserved for the rest of the row. */
function escapeText(out: JsonBytes, text: string, rest: number): void {
  const escaped = Buffer.from(JSON.stringify(text))
  out.reserve(escaped.length + rest)
  append(out, escaped)
}

// `2026-01-31 23:59:59` and `+00`; a fraction has a point and one to six digits.
const DATE_LENGTH = 10
const SECONDS_LENGTH = 19
const ZONE_LENGTH = 3
const MAX_LENGTH = SECONDS_LENGTH + 7 + ZONE_LENGTH
const SPACE = 0x20
const PLUS = 0x2b
const POINT = 0x2e
const ZERO = 0x30
const UPPER_T = 0x54
const UPPER_Z = 0x5a

/** A `timestamptz` as PostgreSQL writes it in UTC, in our canonical form: `"2026-01-31T23:59:59.123456Z"`. */
function writeInstant(out: JsonBytes, from: Buffer, start: number, length: number): void {
  const zone = start + length - ZONE_LENGTH
  const hasFraction = length > SECONDS_LENGTH + ZONE_LENGTH
  if (
    length < SECONDS_LENGTH + ZONE_LENGTH ||
    length > MAX_LENGTH ||
    from[start + DATE_LENGTH] !== SPACE ||
    from[zone] !== PLUS ||
    from[zone + 1] !== ZERO ||
    from[zone + 2] !== ZERO ||
    (hasFraction && from[start + SECONDS_LENGTH] !== POINT)
  ) {
    throw new Error(`Bug: the database wrote the time "${from.toString('utf8', start, start + length)}"`)
  }
  const { bytes } = out
  let to = out.length
  bytes[to++] = QUOTE
  const begin = to
  for (let at = start; at < zone; at += 1) bytes[to++] = from[at]!
  bytes[begin + DATE_LENGTH] = UPPER_T
  if (!hasFraction) bytes[to++] = POINT
  for (const last = begin + SECONDS_LENGTH + 7; to < last; ) bytes[to++] = ZERO
  bytes[to++] = UPPER_Z
  bytes[to++] = QUOTE
  out.length = to
}
