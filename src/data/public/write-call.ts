// One request that writes records: what was read of it, and its result.
import type { FastifyRequest } from 'fastify'
import { BadLine } from '../../core/records/import/fields.ts'
import { hideSecrets } from '../../lib/hide-secrets.ts'
import type { FeedReject, FeedRow } from '../ingest/feed-batch.ts'
import { respond } from '../ingest/response.ts'
import type { Row } from '../ingest/row.ts'
import { Written } from '../ingest/writers.ts'
import type { PublicContext } from './context.ts'

export interface WriteRoute {
  Querystring: { mode: 'merge' | 'replace'; events: 'on' | 'off'; skip_bad: boolean }
  Body: unknown
}

export type WriteRequest = FastifyRequest<WriteRoute>

const NOTHING = { written: 0, unchanged: 0, skipped: 0, erased: 0 }
// All of a JSON call: clients tell their callers which records were not written.
const REPORTED = 1000
// Those that decide whose card is charged.
const OF_OPERATORS = new Set(['payment', 'customer', 'merchant_account'])

/** The records of one request, as they are read. */
export class WriteCall {
  readonly #context: PublicContext
  readonly #request: WriteRequest
  readonly #rows: FeedRow[] = []
  readonly #rejects: FeedReject[] = []
  readonly #written = new Written()

  constructor(context: PublicContext, request: WriteRequest) {
    this.#context = context
    this.#request = request
  }

  async reading() {
    return { latest: await this.#context.feed.latest(), merge: this.#request.query.mode === 'merge' }
  }

  add(row: Row, place: number): void {
    refuseKind(row.kind.name, this.#request)
    this.#rows.push({ ...row, place })
  }

  reject(one: FeedReject, record: string): void {
    this.#rejects.push(one)
    this.#written.add(record, one.code)
  }

  /** Writes them in a batch with those of other calls. Throws the 400 when bad records kept everything from being written. */
  async write(read: number, where: 'index' | 'line'): Promise<object> {
    const { projectId, organizationId, query } = this.#request
    const { events, skip_bad: skipBad } = query
    const isRefused = this.#rejects.length > 0 && (!skipBad || this.#rows.length === 0)
    const call = { projectId, organizationId, rows: this.#rows, emitEvents: events === 'on', skipBad }
    const result = isRefused ? { ...NOTHING, rejects: [] } : await this.#context.feed.write(call)
    const kinds = new Map(this.#rows.map(({ place, kind }) => [place, kind.name]))
    for (const one of result.rejects) this.reject(one, kinds.get(one.place)!)
    const isWritten = !isRefused && (skipBad || result.rejects.length === 0)
    const bad = new Set(result.rejects.map(({ place }) => place))
    for (const [place, kind] of isWritten ? kinds : []) if (!bad.has(place)) this.#written.add(kind)
    const { written, unchanged, skipped, erased } = result
    const counts = { read, written, unchanged, skipped, erased, rejected: this.#rejects.length }
    note(this.#context, this.#request, counts, this.#written)
    const first = this.#rejects.slice(0, REPORTED)
    return respond(
      counts,
      first.map(({ place, code, reason }) => ({ [where]: place, code, reason: hideSecrets(reason) })),
      skipBad,
    )
  }
}

type Counts = typeof NOTHING & { read: number; rejected: number }

/** For metrics and for the page of those who write. */
export function note(
  context: PublicContext,
  { projectId, keyId }: WriteRequest,
  counts: Counts,
  written: Written,
): void {
  const { read: _read, ...outcomes } = counts
  context.countRecords(keyId, outcomes)
  context.writers.note(projectId, keyId, written)
}

/** Whether keys need the switch of the project to write records of this kind. */
export const isOfOperators = (name: string): boolean => OF_OPERATORS.has(name)

export function refuseKind(name: string, { writesPayments }: Pick<WriteRequest, 'writesPayments'>): void {
  if (isOfOperators(name) && !writesPayments)
    throw new BadLine(
      `${name} must be imported by an operator, because it decides whose card is charged`,
      'not_allowed',
    )
}
