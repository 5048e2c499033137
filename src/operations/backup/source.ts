// Opens a backup of any format for reading: its description first, then its script.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createZstdDecompress } from 'node:zlib'
import { Refusal } from '../../lib/errors.ts'
import { whyNot } from '../../lib/files.ts'
import {
  FORMAT,
  type Format,
  HEADER_LINE,
  type Header,
  MAGIC,
  SEAL_LINE,
  type Seal,
  TRAILER_LINE,
  type Trailer,
} from './format.ts'
import type { Progress } from './progress.ts'
import { DamagedError, readCopyLine, Script } from './script.ts'
import { readArchive, toolVersion } from './tools.ts'

export interface Source {
  format: Format
  header: Header
  script: Script
}

export interface ReadOptions {
  signal: AbortSignal
  progress: Progress
}

/** Opens a file, or standard input (`-`). Throws a `Refusal` for a file that is no backup, a `DamagedError` for an incomplete one. */
export async function openSource(file: string, options: ReadOptions): Promise<Source> {
  if (file === '-') return openScript(Readable.from(withoutArchive(process.stdin)), options)
  if ((await formatOf(file)) === 'postgresql') return openArchive(file, options)
  // Read once before anything is locked, so that damage is found at once and not after hours.
  options.progress.at('Checking the file')
  const { script } = await openScript(createReadStream(file), options)
  await checkScript(script)
  return openScript(createReadStream(file), options)
}

/** Reads only the description of a file. Throws as `openSource` does, but finds no damage behind the description. */
export async function readHeader(file: string, options: ReadOptions): Promise<Header> {
  if ((await formatOf(file)) === 'postgresql') return checkFormat((await readTrailer(file)).header)
  const { header, script } = await openScript(createReadStream(file), options)
  await script.close()
  return header
}

/** Reads a script of our own to its end, as psql would, without executing it. */
async function checkScript(script: Script): Promise<void> {
  let seal: Seal | undefined
  for (let line = await script.line(); line !== undefined; line = await script.line()) {
    if (readCopyLine(line)) for await (const _ of script.rows());
    else if (line.startsWith(SEAL_LINE)) seal = script.checkSeal(line)
  }
  if (!seal) throw new DamagedError('It is cut off.')
}

async function formatOf(file: string): Promise<Format> {
  const beginning = Buffer.alloc(8)
  try {
    const handle = await open(file)
    await handle.read(beginning).finally(() => handle.close())
  } catch (error) {
    throw new Refusal(`${file} cannot be read: ${whyNot(error as NodeJS.ErrnoException)}.`)
  }
  const formats: Format[] = ['tundish', 'postgresql']
  const format = formats.find((one) => beginning.subarray(0, MAGIC[one].length).equals(MAGIC[one]))
  if (!format) throw new Refusal(`${file} is not a backup of Tundish.`)
  return format
}

async function openScript(input: Readable, { signal, progress }: ReadOptions): Promise<Source> {
  const output = createZstdDecompress()
  // Errors are passed to the reader of the output.
  pipeline(input, output, { signal }).catch(() => {})
  const script = new Script(counted(output, progress))
  const line = await script.line()
  if (!line?.startsWith(HEADER_LINE)) throw new Refusal('That is not a backup of Tundish.')
  return { format: 'tundish', header: checkFormat(parse(line.slice(HEADER_LINE.length))), script }
}

async function* withoutArchive(input: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let isFirst = true
  for await (const chunk of input) {
    if (isFirst && chunk.indexOf(MAGIC.postgresql) === 0)
      throw new Refusal(
        'Standard input holds an archive of pg_dump, which is restored from a file: save it, and name that file.',
      )
    isFirst = false
    yield chunk
  }
}

async function openArchive(file: string, options: ReadOptions): Promise<Source> {
  const { header, bytes, sha256 } = await readTrailer(file)
  checkFormat(header)
  if ((await toolVersion('pg_restore')) === undefined)
    throw new Refusal(
      `${file} was made by pg_dump: put pg_restore of PostgreSQL on the PATH, of that version or newer.`,
    )
  await checkBytes(file, bytes, sha256, options)
  const script = new Script(counted(readArchive(file, options.signal), options.progress))
  return { format: 'postgresql', header, script }
}

/** A backup of a newer format needs a newer program. */
function checkFormat(header: Header): Header {
  if (header.format > FORMAT)
    throw new Refusal(`The backup was made by Tundish ${header.tundish}, which is newer: restore it with that version.`)
  return header
}

const LONGEST_TRAILER = 1024 * 1024

async function readTrailer(file: string): Promise<Trailer> {
  const handle = await open(file)
  try {
    const text = await readTail(handle)
    const begins = text.lastIndexOf(TRAILER_LINE)
    // An archive of a pg_dump run by hand has no trailer either: it is unknown whether it is complete, and which master key it needs.
    if (begins < 0 || !text.endsWith('\n'))
      throw new Refusal(`${file} is an archive of pg_dump that "tundish backup" did not make, or is cut off.`)
    return parse(text.slice(begins + TRAILER_LINE.length))
  } finally {
    await handle.close()
  }
}

async function readTail(handle: FileHandle): Promise<string> {
  const { size } = await handle.stat()
  const length = Math.min(size, LONGEST_TRAILER)
  const { buffer } = await handle.read({ buffer: Buffer.alloc(length), position: size - length })
  return buffer.toString('utf8')
}

async function checkBytes(file: string, bytes: number, sha256: string, { signal, progress }: ReadOptions) {
  const hash = createHash('sha256')
  progress.at('Checking the file')
  for await (const chunk of createReadStream(file, { end: bytes - 1, signal })) {
    hash.update(chunk)
    progress.moved(chunk.length)
  }
  if (hash.digest('hex') !== sha256) throw new DamagedError('Its SHA-256 is not that of what was written.')
}

async function* counted(chunks: AsyncIterable<Buffer>, progress: Progress): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of chunks) {
      progress.moved(chunk.length)
      yield chunk
    }
  } catch (error) {
    const { code } = error as { code?: string }
    throw code?.startsWith('Z') ? new DamagedError('It cannot be decompressed to its end.') : error
  }
}

function parse<T>(text: string): T {
  try {
    return JSON.parse(text) as T
  } catch {
    throw new DamagedError('Its description cannot be read.')
  }
}
