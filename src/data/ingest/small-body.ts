// Bodies of lines that are small enough for memory, so that they need no separate import.
import { isUtf8 } from 'node:buffer'
import { Readable } from 'node:stream'
import { gunzipSync } from 'node:zlib'
import { emptyLinesAt } from './lines.ts'

export interface Beginning {
  /** What was read: the whole body if `isWhole`. */
  bytes: Buffer
  isWhole: boolean
  /** The whole body, what was read already included. */
  all(): Readable
  /** Discards what was not read of the body, so that the next request on the connection is found. */
  dropRest(): void
}

// As large as a JSON body may be.
const MOST_BYTES = 1 << 20

/** Reads a body as far as it is small. */
export async function readBeginning(body: Readable): Promise<Beginning> {
  const chunks: Buffer[] = []
  let size = 0
  const iterator: AsyncIterator<Buffer> = body.iterator({ destroyOnReturn: false })
  while (size < MOST_BYTES) {
    const { value, done } = await iterator.next()
    if (done) {
      const bytes = Buffer.concat(chunks)
      return { bytes, isWhole: true, all: () => Readable.from([bytes]), dropRest() {} }
    }
    chunks.push(value)
    size += value.length
  }
  return {
    bytes: Buffer.concat(chunks),
    isWhole: false,
    all: () => Readable.from(following(chunks, iterator)),
    dropRest: () => void iterator.return!().finally(() => setImmediate(() => body.resume())),
  }
}

async function* following(chunks: Buffer[], iterator: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield* chunks
  for (;;) {
    const { value, done } = await iterator.next()
    if (done) return
    yield value
  }
}

/** The lines that are not empty, decompressed, with their numbers; undefined if these or the bytes are too many, or no text. */
export function linesOf(bytes: Buffer, most: number): { text: string; number: number }[] | undefined {
  const plain = isGzip(bytes) ? decompressed(bytes) : bytes
  if (!plain || !isUtf8(plain)) return undefined
  const text = plain.toString('utf8')
  const lines: { text: string; number: number }[] = []
  for (let [start, number] = [0, 1]; start < text.length; number++) {
    const empty = emptyLinesAt(text, start)
    number += empty.count
    const at = text.indexOf('\n', empty.end)
    const end = at < 0 ? text.length : at
    const line = text.slice(empty.end, end)
    if (/[^ \t\r]/.test(line)) lines.push({ text: line, number })
    if (lines.length > most) return undefined
    start = end + 1
  }
  return lines
}

const isGzip = (bytes: Buffer) => bytes[0] === 0x1f && bytes[1] === 0x8b

function decompressed(bytes: Buffer): Buffer | undefined {
  try {
    return gunzipSync(bytes, { maxOutputLength: MOST_BYTES })
  } catch {
    // The import says what is wrong with it.
    return undefined
  }
}
