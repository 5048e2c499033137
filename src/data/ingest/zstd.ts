// Decompresses zstd of any number of frames, as pzstd and a concatenation of files have. Node's decompressor ends with the first.
import { pipeline } from 'node:stream'
import { createZstdDecompress } from 'node:zlib'
import { Refusal } from '../../lib/errors.ts'

type Chunks = AsyncGenerator<Buffer>

// The format: RFC 8878, section 3.
const FRAME = 0xfd2fb528
const SKIPPABLE = 0x184d2a50
const SKIPPABLE_MASK = 0xfffffff0
const DICTIONARY_ID_BYTES = [0, 1, 2, 4]
const CONTENT_SIZE_BYTES = [0, 2, 4, 8]
const CHECKSUM_BYTES = 4
const RLE_BLOCK = 1

/** The text of all frames. Throws a `Refusal` for what follows them and is no frame, and zlib's error for a damaged one. */
export async function* zstdDecompressed(name: string, chunks: Chunks): Chunks {
  const input = new Input(chunks)
  try {
    for (let magic = await input.peek(4); magic.length > 0; magic = await input.peek(4)) {
      const number = magic.length === 4 ? magic.readUInt32LE() : undefined
      if (number === FRAME) yield* pipeline(frame(input), createZstdDecompress(), () => {})
      else if (number === undefined || (number & SKIPPABLE_MASK) >>> 0 !== SKIPPABLE)
        throw damaged(name, 'unknown frame')
      else if (!(await skip(input))) throw damaged(name, 'unexpected end of file')
    }
  } finally {
    await chunks.return(undefined)
  }
}

/** The bytes of one frame, or as many as there are: the decompressor finds what is missing. */
async function* frame(input: Input): Chunks {
  const start = await input.peek(5)
  const descriptor = start[4] ?? 0
  const isSingleSegment = (descriptor & 0x20) !== 0
  const contentSizeBytes = CONTENT_SIZE_BYTES[descriptor >> 6] || (isSingleSegment ? 1 : 0)
  yield* input.take(5 + (isSingleSegment ? 0 : 1) + DICTIONARY_ID_BYTES[descriptor & 3]! + contentSizeBytes)
  for (let isLast = false; !isLast; ) {
    const header = await input.peek(3)
    if (header.length < 3) return yield* input.take(3)
    const bits = header.readUIntLE(0, 3)
    isLast = (bits & 1) === 1
    yield* input.take(3 + (((bits >> 1) & 3) === RLE_BLOCK ? 1 : bits >> 3))
  }
  if (descriptor & 4) yield* input.take(CHECKSUM_BYTES)
}

/** A skippable frame has any content, such as the sizes of the other frames. Returns whether it was complete. */
async function skip(input: Input): Promise<boolean> {
  const header = await input.peek(8)
  let left = 8 + (header.length < 8 ? 0 : header.readUInt32LE(4))
  for await (const piece of input.take(left)) left -= piece.length
  return left === 0
}

const damaged = (name: string, why: string) =>
  new Refusal(`${name} is zstd, but damaged or incomplete (${why}): nothing was written.`)

/** The compressed bytes, read by length. */
class Input {
  readonly #chunks: Chunks
  #held: Buffer = Buffer.alloc(0)

  constructor(chunks: Chunks) {
    this.#chunks = chunks
  }

  /** The next bytes, which are not consumed; fewer at the end. */
  async peek(length: number): Promise<Buffer> {
    while (this.#held.length < length) {
      const { value, done } = await this.#chunks.next()
      if (done) break
      this.#held = Buffer.concat([this.#held, value])
    }
    return this.#held.subarray(0, length)
  }

  /** Consumes the next bytes, fewer at the end, as pieces of the chunks they came in. */
  async *take(length: number): Chunks {
    for (let left = length; left > 0; ) {
      if ((await this.peek(1)).length === 0) return
      const piece = this.#held.subarray(0, left)
      this.#held = this.#held.subarray(piece.length)
      left -= piece.length
      yield piece
    }
  }
}
