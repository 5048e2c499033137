// Remembers each call to a provider about an order: what an operator wants to know when somebody asks what happened.
import { isUnavailable, type Statement } from '../lib/db.ts'
import { gather } from '../lib/gather.ts'
import type { BillingContext } from './context.ts'

/** The order that a call is about, or the refund and its order. */
interface About {
  organization_id: string
  order_id: string
  refund_id?: string | null
}

interface Note extends About {
  call: string
  outcome: string
  duration_ms: number
}

/**
 * Calls a provider and notes the outcome beside the order. Nobody waits for the note, and one that cannot be written
 * changes nothing: money does not depend on it.
 */
export async function noted<T extends { outcome: string }>(
  { db, clock, log }: BillingContext,
  { organization_id, order_id, refund_id = null }: About,
  call: 'charge' | 'look_up' | 'refuse' | 'refund',
  ask: () => Promise<T>,
): Promise<T> {
  const begunMs = clock.monotonicMs()
  const answer = await ask()
  const duration_ms = Math.round(clock.monotonicMs() - begunMs)
  const { outcome } = answer
  note(db, { organization_id, order_id, refund_id, call, outcome, duration_ms }).catch((error) => {
    if (!isUnavailable(error)) log.warn({ err: error, order_id }, 'A call to a provider was not noted.')
  })
  return answer
}

const note = gather<Note, Note>({
  group: () => 'all',
  async work(db, notes) {
    await db.query(NOTE, [JSON.stringify(notes)])
    return notes
  },
})

// Its commit does not wait for the disk: a note that is lost with the power costs nobody anything.
const NOTE: Statement = {
  name: 'note calls to providers',
  text: `
    with quick as materialized (select set_config('synchronous_commit', 'off', true))
    insert into order_log (organization_id, order_id, refund_id, call, outcome, duration_ms, at)
    select organization_id, order_id, refund_id, call, outcome, duration_ms,
      db_clock() - make_interval(secs => duration_ms / 1000.0)
    from quick, json_populate_recordset(null::order_log, $1)`,
}
