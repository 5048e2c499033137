// Detects compressed sources by their first bytes: gzip and zstd are decompressed, other formats are refused by name.
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { Refusal } from '../../lib/errors.ts'
import { zstdDecompressed } from './zstd.ts'

type Chunks = AsyncGenerator<Buffer>

interface Format {
  name: string
  magic: readonly number[]
  /** Missing for a format that is not read. */
  decompress?: (name: string, chunks: Chunks) => Chunks
}

const FORMATS: readonly Format[] = [
  { name: 'gzip', magic: [0x1f, 0x8b], decompress: gunzipped },
  { name: 'zstd', magic: [0x28, 0xb5, 0x2f, 0xfd], decompress: zstdDecompressed },
  // A skippable frame, with which pzstd begins.
  { name: 'zstd', magic: [0x50, 0x2a, 0x4d, 0x18], decompress: zstdDecompressed },
  { name: 'zip', magic: [0x50, 0x4b, 0x03, 0x04] },
  { name: 'bzip2', magic: [0x42, 0x5a, 0x68] },
  { name: 'xz', magic: [0xfd, 0x37, 0x7a, 0x58, 0x5a] },
  // UTF-32 first, because its byte order mark begins as that of UTF-16. Without a mark, by the brace of the first record.
  { name: 'UTF-32', magic: [0xff, 0xfe, 0x00, 0x00] },
  { name: 'UTF-32', magic: [0x00, 0x00, 0xfe, 0xff] },
  { name: 'UTF-32', magic: [0x7b, 0x00, 0x00, 0x00] },
  { name: 'UTF-32', magic: [0x00, 0x00, 0x00, 0x7b] },
  { name: 'UTF-16', magic: [0xff, 0xfe] },
  { name: 'UTF-16', magic: [0xfe, 0xff] },
  { name: 'UTF-16', magic: [0x7b, 0x00] },
  { name: 'UTF-16', magic: [0x00, 0x7b] },
]

const LONGEST_MAGIC = Math.max(...FORMATS.map(({ magic }) => magic.length))

/**
 * The text of a stream, decompressed if it is compressed. `onBytes` is called with the size of each chunk before it is
 * decompressed. Throws a `Refusal` that names the source when it is damaged or of a format that is not read.
 */
export async function* decompressed(
  name: string,
  stream: AsyncIterable<Buffer | string> | Iterable<Buffer>,
  onBytes: (bytes: number) => void,
): Chunks {
  const counted = count(stream, onBytes)
  const { first, ended } = await readFirst(counted)
  const format = FORMATS.find(({ magic }) => magic.every((byte, n) => first[n] === byte))
  const rest = chain(first, ended ? undefined : counted)
  if (!format) return yield* rest
  if (!format.decompress) throw new Refusal(`${name} is ${format.name}: convert it to plain UTF-8 text or gzip.`)
  try {
    yield* format.decompress(name, rest)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (!code?.startsWith('Z')) throw error
    throw new Refusal(`${name} is ${format.name}, but damaged or incomplete (${message}): nothing was written.`)
  }
}

async function* gunzipped(_name: string, chunks: Chunks): Chunks {
  yield* pipeline(chunks, createGunzip(), () => {})
}

async function* count(stream: Parameters<typeof decompressed>[1], onBytes: (bytes: number) => void): Chunks {
  for await (const chunk of stream) {
    onBytes(chunk.length)
    yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
  }
}

/** Reads at least the bytes that identify the format, if the stream has that many. */
async function readFirst(chunks: Chunks): Promise<{ first: Buffer; ended: boolean }> {
  let first: Buffer = Buffer.alloc(0)
  while (first.length < LONGEST_MAGIC) {
    const { value, done } = await chunks.next()
    if (done) return { first, ended: true }
    first = Buffer.concat([first, value])
  }
  return { first, ended: false }
}

async function* chain(first: Buffer, rest: Chunks | undefined): Chunks {
  yield first
  if (rest) yield* rest
}
