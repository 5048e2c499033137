// Reads the sources of an import line by line into the staging tables and the rejected lines.
import { addAbortSignal, type Readable } from 'node:stream'
import { BadLine, type Reading } from '../../core/records/import/fields.ts'
import type { Query } from '../../lib/pg/types.ts'
import { instantFromMicros, microsFromPg } from '../../lib/time.ts'
import { decompressed } from './compressed.ts'
import { readLines } from './lines.ts'
import { readRow } from './row.ts'
import type { Staging } from './staging.ts'

/** Newline-delimited JSON, plain or compressed, and its name in messages. */
export interface Source {
  name: string
  stream(): Readable
}

export interface ReadOptions {
  signal?: AbortSignal
  /** Reading stops at this many bad lines. */
  maxBadLines: number
  /** Whether lines have only the fields that change. */
  merge: boolean
  refuseKind?: ((name: string) => void) | undefined
  /** Called after each chunk with the total number of bytes and lines read. */
  onRead(bytes: number, lines: number): void
}

export interface ReadSources {
  /** The names of the sources, in their order. */
  names: string[]
  /** How many lines were read, empty ones not counted. */
  lines: number
  /** Whether reading stopped at `maxBadLines` bad lines. */
  stopped: boolean
}

export async function readSources(
  sources: Iterable<Source> | AsyncIterable<Source>,
  staging: Staging,
  query: Query,
  { signal, maxBadLines, merge, refuseKind, onRead }: ReadOptions,
): Promise<ReadSources> {
  const latest = await openLatest(query)
  const names: string[] = []
  let lines = 0
  let bytes = 0
  const countBytes = (size: number) => {
    bytes += size
  }
  const isFull = () => staging.badLines >= maxBadLines
  for await (const { name, stream } of sources) {
    const source = names.push(name)
    const reading: Reading = { latest: latest(), merge }
    const sink = { ...sinkOf(staging, source, reading, () => lines++, refuseKind), isFull }
    const input = signal ? addAbortSignal(signal, stream()) : stream()
    for await (const _size of readLines(name, decompressed(name, input, countBytes), sink)) {
      reading.latest = latest()
      await staging.drain()
      onRead(bytes, lines)
    }
    if (isFull()) return { names, lines, stopped: true }
  }
  return { names, lines, stopped: false }
}

// The largest tolerated lead of another machine's clock.
const LEEWAY_MICROS = 5n * 60n * 1_000_000n

/** The latest time allowed in a line. Reads the database's clock once and adds the time that has passed since. */
export async function openLatest(query: Query): Promise<() => string> {
  const [row] = await query<{ now: string }>('select db_clock() as now')
  const start = microsFromPg(row!.now) + LEEWAY_MICROS
  const startMs = performance.now()
  return () => instantFromMicros(start + BigInt(Math.floor((performance.now() - startMs) * 1000)))
}

function sinkOf(
  staging: Staging,
  source: number,
  reading: Reading,
  count: () => void,
  refuseKind?: (name: string) => void,
) {
  return {
    line(number: number, text: string) {
      count()
      try {
        const row = readRow(text, reading)
        refuseKind?.(row.kind.name)
        staging.add(row, source, number, text)
      } catch (error) {
        if (!(error instanceof BadLine)) throw error
        staging.reject(source, number, error, () => Buffer.from(text))
      }
    },
    unreadable(number: number, reason: BadLine, bytes: Buffer, part: number) {
      if (part === 0) count()
      staging.reject(source, number, reason, () => bytes, part)
    },
  }
}
