// The rejected lines of an import, collected next to the staged rows.
import type { RejectCode } from '../../core/records/import/fields.ts'
import { KINDS } from '../../core/records/records.ts'
import { hideSecrets } from '../../lib/hide-secrets.ts'
import type { Query } from '../../lib/pg/types.ts'
import { REJECTED } from './staging.ts'

/** The place of a bad line, and the reason. */
export interface Reject {
  source: string
  line: number
  code: RejectCode
  reason: string
}

/** A rejected line unchanged, or a part of one that is too long for memory; the last part ends with a line feed. */
export interface RejectedLine {
  source: string
  bytes: Buffer
  code: RejectCode
  reason: string
}

export async function countRejected(query: Query): Promise<number> {
  const [row] = await query(`select count(*) as n from ${REJECTED} where part = 0`)
  return Number(row!.n)
}

/** The rejected lines by their code and kind; those that are bad in themselves have none. */
export interface RejectedCount {
  record: string
  code: RejectCode
  n: number
}

export async function countByCode(query: Query): Promise<RejectedCount[]> {
  const rows = await query(
    `select step, code, count(*) as n from ${REJECTED} where part = 0 group by step, code order by step, code`,
  )
  return rows.map(({ step, code, n }) => ({
    record: KINDS[Number(step) - 1]?.name ?? '',
    code: code as RejectCode,
    n: Number(n),
  }))
}

/** The first rejected lines, causes first: an invalid line comes before those that refer to its record. Keys are hidden. */
export async function firstRejected(query: Query, sources: readonly string[], limit: number): Promise<Reject[]> {
  const rows = await query(
    `select source, line, code, reason from ${REJECTED} where part = 0 order by step, source, line limit ${limit}`,
  )
  return rows.map(({ source, line, code, reason }) => ({
    source: sources[Number(source) - 1]!,
    line: Number(line),
    code: code as RejectCode,
    // An id or the name of a property may be a key.
    reason: hideSecrets(reason!),
  }))
}

/** All rejected lines in their order. Runs a separate transaction while it is read. */
export async function* rejectedLines(query: Query, sources: readonly string[]): AsyncGenerator<RejectedLine> {
  await query('begin')
  await query(`
    declare rejected no scroll cursor for
    select source, encode(bytes, 'base64') as bytes, lead(part, 1, 0) over (order by source, line, part) = 0 as ends,
      code, reason
    from ${REJECTED} order by source, line, part`)
  for (;;) {
    const rows = await query(`fetch ${FETCHED} from rejected`)
    for (const { source, bytes, ends, code, reason } of rows) {
      const line = Buffer.from(bytes!, 'base64')
      yield {
        source: sources[Number(source) - 1]!,
        bytes: ends === 't' ? Buffer.concat([line, LINE_FEED]) : line,
        code: code as RejectCode,
        reason: hideSecrets(reason!),
      }
    }
    if (rows.length < FETCHED) break
  }
  await query('commit')
}

// Rows a fetch; each may be as long as a piece of a stream.
const FETCHED = 32
const LINE_FEED = Buffer.from('\n')
