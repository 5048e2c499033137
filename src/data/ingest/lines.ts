// Splits a stream of bytes into lines, holding at most one piece of it and one line in memory.
import { isUtf8 } from 'node:buffer'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { BadLine } from '../../core/records/import/fields.ts'
import { Refusal } from '../../lib/errors.ts'

/** Receives the lines. Numbers count from 1; empty lines are counted and skipped. */
export interface LineSink {
  line(number: number, text: string): void
  /** Receives a line that is not UTF-8, or one longer than `MAX_LINE_BYTES` in parts, numbered from 0. */
  unreadable(number: number, reason: BadLine, bytes: Buffer, part: number): void
  /** Whether reading should stop; called after each line. */
  isFull(): boolean
}

export const MAX_LINE_BYTES = 1 << 20
// Compressed, gigabytes of empty lines are a small body.
export const MAX_EMPTY_BYTES = 1 << 20

export class TooManyEmptyLines extends Refusal {}

/**
 * Passes the lines of the stream to `sink`; yields the number of bytes read after each piece. Stops when the sink is full.
 * Throws `TooManyEmptyLines`, which names the source, when that many bytes of them come one after the other.
 */
export async function* readLines(
  name: string,
  stream: AsyncIterable<Buffer | string>,
  sink: LineSink,
): AsyncGenerator<number> {
  const cutter = new Cutter(name, sink)
  for await (const chunk of stream) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    for (let start = 0; start < bytes.length; start += PIECE_BYTES) {
      const piece = bytes.subarray(start, start + PIECE_BYTES)
      await inSlices(cutter.push(piece))
      yield piece.length
      if (sink.isFull()) return
    }
  }
  await inSlices(cutter.end())
  yield 0
}

/** Runs the steps, and lets the process do other work in between when they take long: 64 KB may be 30,000 bad lines. */
async function inSlices(steps: Generator<void>): Promise<void> {
  let endMs = performance.now() + SLICE_MS
  for (const _step of steps) {
    if (performance.now() < endMs) continue
    await nextTurn()
    endMs = performance.now() + SLICE_MS
  }
}

const SLICE_MS = 5
const TAB = 0x09
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const BYTE_ORDER_MARK = 0xfeff
const SPACE = 0x20
// Small enough that the batches of the staging tables are sent in time.
const PIECE_BYTES = 1 << 16

/** The empty lines that end in the text, from `start` on: how many, and where the line behind them begins. */
export function emptyLinesAt(text: string, start: number): { count: number; end: number } {
  let [count, end] = [0, start]
  for (let n = start; n < text.length; n++) {
    const code = text.charCodeAt(n)
    if (code === LINE_FEED) {
      count++
      end = n + 1
    } else if (code !== SPACE && code !== TAB && code !== CARRIAGE_RETURN) break
  }
  return { count, end }
}

class Cutter {
  private readonly name: string
  private readonly sink: LineSink
  /** How many lines are complete. */
  private number = 0
  /** The beginning of the next line. */
  private held: Buffer[] = []
  private heldBytes = 0
  /** How many parts of the next line have been rejected, because it is too long to be held. */
  private parts = 0
  /** Bytes of the empty lines since the last other line. */
  private emptyBytes = 0

  constructor(name: string, sink: LineSink) {
    this.name = name
    this.sink = sink
  }

  /** Takes the next bytes; pauses after each line. */
  *push(piece: Buffer): Generator<void> {
    let start = 0
    if (this.heldBytes > 0) {
      const end = piece.indexOf(LINE_FEED)
      this.hold(end < 0 ? piece : piece.subarray(0, end))
      if (end < 0) return
      yield* this.complete()
      start = end + 1
    }
    const end = piece.lastIndexOf(LINE_FEED)
    if (end >= start) yield* this.cut(piece.subarray(start, end))
    const rest = piece.subarray(Math.max(start, end + 1))
    if (rest.length > 0) this.hold(rest)
  }

  *end(): Generator<void> {
    if (this.heldBytes > 0) yield* this.complete()
  }

  private hold(bytes: Buffer): void {
    this.held.push(bytes)
    this.heldBytes += bytes.length
    if (this.heldBytes > MAX_LINE_BYTES) this.rejectHeld()
  }

  /** Rejects the held bytes of a line that is too long, because the line may be as long as the stream. */
  private rejectHeld(): void {
    this.emptyBytes = 0
    const reason = new BadLine(`the line is longer than ${MAX_LINE_BYTES} bytes`, 'line_too_long')
    for (const part of this.held.splice(0)) this.sink.unreadable(this.number + 1, reason, part, this.parts++)
  }

  private *complete(): Generator<void> {
    const line = this.parts === 0 ? Buffer.concat(this.held) : undefined
    this.held = []
    this.heldBytes = 0
    this.parts = 0
    if (line) yield* this.cut(line)
    else this.number++
  }

  /** Cuts whole lines, the last of them without its line feed. */
  private *cut(bytes: Buffer): Generator<void> {
    const lines = isUtf8(bytes) ? this.cutText(bytes) : this.cutBytes(bytes)
    for (const _line of lines) {
      if (this.sink.isFull()) return
      yield
    }
  }

  private *cutText(bytes: Buffer): Generator<void> {
    // One string for all of them, because its slices share its memory.
    const text = bytes.toString('utf8')
    for (let start = 0; start <= text.length; ) {
      const empty = emptyLinesAt(text, start)
      this.skip(empty.count, empty.end - start)
      start = empty.end
      const at = text.indexOf('\n', start)
      const end = at < 0 ? text.length : at
      this.take(text.slice(start, end))
      start = end + 1
      yield
    }
  }

  private skip(lines: number, bytes: number): void {
    this.number += lines
    this.emptyBytes += bytes
    if (this.emptyBytes > MAX_EMPTY_BYTES)
      throw new TooManyEmptyLines(
        `${this.name} has more than ${MAX_EMPTY_BYTES} bytes of empty lines one after the other, up to line ${this.number}: nothing was written.`,
      )
  }

  private *cutBytes(bytes: Buffer): Generator<void> {
    for (let start = 0; start <= bytes.length; ) {
      const at = bytes.indexOf(LINE_FEED, start)
      const end = at < 0 ? bytes.length : at
      const line = bytes.subarray(start, end)
      if (isUtf8(line)) this.take(line.toString('utf8'))
      else this.reject(line)
      start = end + 1
      yield
    }
  }

  private reject(line: Buffer): void {
    this.emptyBytes = 0
    this.sink.unreadable(++this.number, new BadLine('the line is not UTF-8', 'invalid_json'), line, 0)
  }

  private take(line: string): void {
    this.number++
    // Some programs write a byte order mark at the beginning.
    const text = this.number === 1 && line.charCodeAt(0) === BYTE_ORDER_MARK ? line.slice(1) : line
    if (text.charCodeAt(0) > SPACE || /[^ \t\r]/.test(text)) {
      this.emptyBytes = 0
      this.sink.line(this.number, text)
    } else this.skip(0, text.length + 1)
  }
}
