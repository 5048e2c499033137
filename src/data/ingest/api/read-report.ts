// Reads the payments of a service from its transaction report, from one time to the next.
import { Refusal } from '../../../lib/errors.ts'
import { isObject, type Json, textOf, unwrapped } from './convert.ts'
import type { Ledger } from './ledger.ts'
import type { Piece } from './read-records.ts'
import type { ApiSource } from './source.ts'
import type { Place } from './state.ts'

const PATH = '/v1/transaction_report'
const BEGINNING = '1970-01-01T00:00:00Z'
const LIMIT = 500
// The times of some services have milliseconds: rows of the last one are asked for again.
const OVERLAP_MS = 1

/** Pieces whose `at` is the time of their last row. */
export async function* readReport(source: ApiSource, ledger: Ledger, place: Place): AsyncGenerator<Piece> {
  let after = place.report
  for (let isExact = false; ; ) {
    const asked: string = after === null ? BEGINNING : isExact ? after : earlier(after)
    const rows = await rowsAfter(source, asked)
    const times = rows.map(({ trx_created_at }) => textOf(trx_created_at) ?? '')
    const isFull = rows.length >= LIMIT
    if (isFull && times.some((time, n) => n > 0 && ms(time) < ms(times[n - 1]!)))
      throw new Refusal(`${source.url}${PATH} is not in the order of trx_created_at: it cannot be read to its end.`)
    const { items, odd } = await fresh(rows, ledger)
    const last = times.reduce((one, other) => (ms(other) > ms(one) ? other : one), after ?? '')
    if (items.length > 0 || odd.length > 0) yield { items, odd, at: last === '' ? null : last }
    if (!isFull) return
    const isStuck: boolean = ms(last) <= ms(asked)
    if (isStuck && isExact)
      throw new Refusal(
        `${source.url}${PATH} repeats the rows of ${last} and does not go on: it cannot be read to its end.`,
      )
    // More rows of one time than a page has: behind that time, as the specification says.
    isExact = items.length === 0 || isStuck
    after = last
  }
}

async function rowsAfter(source: ApiSource, last_transaction_date: string): Promise<Json[]> {
  const response = await source.post(PATH, { last_transaction_date, limit: LIMIT })
  if (response.status !== 200) throw source.refusal(PATH, response)
  const body = unwrapped(response.body)
  const rows = isObject(body) ? body.transactions : body
  if (!Array.isArray(rows))
    throw new Refusal(`${source.url}${PATH} did not return a report: its response has no "transactions".`)
  return rows.filter(isObject)
}

/** The rows that were not read before. */
async function fresh(rows: Json[], ledger: Ledger): Promise<Required<Pick<Piece, 'items' | 'odd'>>> {
  const ids = rows.map((row) => textOf(row.trx_id)?.toLowerCase())
  const known = await ledger.known(
    'payment',
    ids.filter((id) => id !== undefined),
  )
  const odd: [string, string][] = []
  const items = rows.flatMap((data, n) => {
    const id = ids[n]
    if (id === undefined) odd.push(['transaction_report', 'has a row without a trx_id'])
    return id === undefined || known.has(id) ? [] : [{ kind: 'payment' as const, data }]
  })
  return { items, odd }
}

const earlier = (time: string) => new Date(Math.max(ms(time) - OVERLAP_MS, 0)).toISOString()
/** A time that cannot be read is the earliest. */
const ms = (time: string) => {
  const value = Date.parse(time)
  return Number.isNaN(value) ? 0 : value
}
