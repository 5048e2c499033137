// Logs each call to a provider with its order, for operators who find out what happened to a charge.
import { batched } from '../../../lib/batching.ts'
import type { Clock } from '../../../lib/clock.ts'
import { isUnavailable } from '../../../lib/pg/errors.ts'
import { onGivenRows } from '../../../lib/pg/given-rows.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import type { Movement } from '../../providers/provider.ts'
import type { BillingContext } from '../context.ts'

/** The order that a call is about, or the refund and its order. */
interface About {
  organization_id: string
  order_id: string
  refund_id?: string | null
}

/** A call to a provider and its outcome. */
export interface Note extends About {
  call: Movement['type'] | 'prepare' | 'confirm' | 'capture' | 'find_by_key' | 'look_up' | 'refuse'
  outcome: string
  duration_ms: number
  /** When it was begun, by the monotonic time of `clock`. */
  begunMs: number
  clock: Clock
}

/**
 * Calls a provider and logs the outcome with the order. The caller does not wait for the note, and if it cannot be written,
 * that changes nothing, because no decision depends on it.
 */
export async function noted<T extends { outcome: string }>(
  context: BillingContext,
  about: About,
  call: Note['call'],
  ask: () => Promise<T>,
): Promise<T> {
  const { result, note } = await timed(context, about, call, ask)
  keep(context, note)
  return result
}

/** Calls a provider; the caller writes the note in the transaction that follows from the result, or passes it to `keep`. */
export async function timed<T extends { outcome: string }>(
  { clock }: BillingContext,
  { organization_id, order_id, refund_id = null }: About,
  call: Note['call'],
  ask: () => Promise<T>,
): Promise<{ result: T; note: Note }> {
  const begunMs = clock.monotonicMs()
  const result = await ask()
  const duration_ms = Math.round(clock.monotonicMs() - begunMs)
  const note = { organization_id, order_id, refund_id, call, outcome: result.outcome, duration_ms, begunMs, clock }
  return { result, note }
}

/** Writes a note without being waited for. */
export function keep({ db, log }: BillingContext, note: Note): void {
  keepTogether(db, note).catch((error) => {
    if (!isUnavailable(error)) log.warn({ err: error, order_id: note.order_id }, 'A call to a provider was not noted.')
  })
}

// Enough for weeks of daily status checks and for every first hour; a charge that is checked for months keeps its newest calls.
const MAX_CALLS_KEPT = 200

/** Deletes the oldest status checks of an order beyond the newest two hundred calls. Calls that move money are always kept. */
export async function trim({ db }: BillingContext, { organization_id, order_id }: About): Promise<void> {
  await db.query(TRIM, [organization_id, order_id, MAX_CALLS_KEPT])
}

const TRIM: Statement = {
  name: 'trim log of provider calls',
  text: `
    delete from order_log where organization_id = $1 and order_id = $2 and call in ('look_up', 'refuse', 'find_by_key')
      and at < (select at from order_log where organization_id = $1 and order_id = $2 order by at desc offset $3 limit 1)`,
}

/** Writes notes in the transaction that settles by them. */
export async function write(query: Query, notes: Note[]): Promise<void> {
  await query(...WRITE(notes.map(written)))
}

/** The row of a note, with how long ago its call was begun. */
function written({ organization_id, order_id, refund_id = null, call, outcome, duration_ms, begunMs, clock }: Note) {
  const ago_ms = String(clock.monotonicMs() - begunMs)
  return { organization_id, order_id, refund_id, call, outcome, duration_ms: String(duration_ms), ago_ms }
}

const keepTogether = batched<Note, Note>({
  tenant: ({ organization_id }) => organization_id,
  async work(db, notes) {
    await db.query(...KEEP(notes.map(written)))
    return notes
  },
})

// A note says when its call was begun, however long the note had to wait.
const COLUMNS = {
  organization_id: 'text',
  order_id: 'uuid',
  refund_id: 'uuid',
  call: 'text',
  outcome: 'text',
  duration_ms: 'int',
  ago_ms: 'float',
}

const writing = (sent: string, from: string) => `
  insert into order_log (organization_id, order_id, refund_id, call, outcome, duration_ms, at)
  select organization_id, order_id, refund_id, call, outcome, duration_ms, ${sent} - make_interval(secs => ago_ms / 1000)
  from ${from}`

const WRITE = onGivenRows('note calls to providers', COLUMNS, (rows) => writing('db_clock()', rows))

// Its commit does not wait for the disk: a note that is lost in a power failure does no harm. `now()` is when PostgreSQL
// got it, before it waited for any lock.
const KEEP = onGivenRows(
  'keep notes of calls to providers',
  COLUMNS,
  (rows) => `
    with quick as materialized (select set_config('synchronous_commit', 'off', true))
    ${writing('db_clock() - (clock_timestamp() - now())', `quick, ${rows}`)}`,
)
