// Reads the sources of an import line by line into the staging tables, or among the rejected lines.
import { addAbortSignal, type Readable } from 'node:stream'
import type { Query } from '../lib/pg/types.ts'
import { instantFromMicros, microsFromPg } from '../lib/time.ts'
import { BadLine, type Reading } from './fields.ts'
import { readLines } from './lines.ts'
import { readRow } from './row.ts'
import type { Staging } from './staging.ts'

/** Newline-delimited JSON under a name for messages. */
export interface Source {
  name: string
  stream(): Readable
}

export interface ReadOptions {
  signal?: AbortSignal
  /** Hears now and then how many bytes and lines have been read in all. */
  onRead(bytes: number, lines: number): void
}

/** Answers the names of the sources, in their order, and how many lines that are not empty they had. */
export async function readSources(
  sources: Iterable<Source> | AsyncIterable<Source>,
  staging: Staging,
  query: Query,
  { signal, onRead }: ReadOptions,
): Promise<{ names: string[]; lines: number }> {
  const latest = await openLatest(query)
  const names: string[] = []
  let lines = 0
  let bytes = 0
  for await (const { name, stream } of sources) {
    const source = names.push(name)
    const reading: Reading = { latest: latest() }
    const sink = sinkOf(staging, source, reading, () => lines++)
    for await (const size of readLines(signal ? addAbortSignal(signal, stream()) : stream(), sink)) {
      bytes += size
      reading.latest = latest()
      await staging.drain()
      onRead(bytes, lines)
    }
  }
  return { names, lines }
}

// By so much may a clock elsewhere be ahead of the database's.
const LEEWAY_MICROS = 5n * 60n * 1_000_000n

/** The latest time that a line may bring, going on with the database's clock, which is read once. */
async function openLatest(query: Query): Promise<() => string> {
  const [row] = await query<{ now: string }>('select db_clock() as now')
  const start = microsFromPg(row!.now) + LEEWAY_MICROS
  const startMs = performance.now()
  return () => instantFromMicros(start + BigInt(Math.floor((performance.now() - startMs) * 1000)))
}

function sinkOf(staging: Staging, source: number, reading: Reading, count: () => void) {
  return {
    line(number: number, text: string) {
      count()
      try {
        staging.add(readRow(text, reading), source, number, text)
      } catch (error) {
        if (!(error instanceof BadLine)) throw error
        staging.reject(source, number, error.message, () => Buffer.from(text))
      }
    },
    unreadable(number: number, reason: string, bytes: Buffer, part: number) {
      if (part === 0) count()
      staging.reject(source, number, reason, () => bytes, part)
    },
  }
}
