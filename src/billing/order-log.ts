// Remembers each call to a provider about an order: what an operator wants to know when somebody asks what happened.
import { isUnavailable, type Statement } from '../lib/db.ts'
import type { BillingContext } from './context.ts'

/** The order that a call is about, or the refund and its order. */
interface About {
  organization_id: string
  order_id: string
  refund_id?: string
}

/**
 * Calls a provider and notes the outcome beside the order. Nobody waits for the note, and one that cannot be written
 * changes nothing: money does not depend on it.
 */
export async function noted<T extends { outcome: string }>(
  { db, clock, log }: BillingContext,
  { organization_id, order_id, refund_id }: About,
  call: 'charge' | 'look_up' | 'refuse' | 'refund',
  ask: () => Promise<T>,
): Promise<T> {
  const begunMs = clock.monotonicMs()
  const answer = await ask()
  const durationMs = Math.round(clock.monotonicMs() - begunMs)
  db.query(NOTE, [organization_id, order_id, refund_id ?? null, call, answer.outcome, durationMs]).catch((error) => {
    if (!isUnavailable(error)) log.warn({ err: error, order_id }, 'A call to a provider was not noted.')
  })
  return answer
}

// Its commit does not wait for the disk: a note that is lost with the power costs nobody anything.
const NOTE: Statement = {
  name: 'note call to provider',
  text: `
    with quick as materialized (select set_config('synchronous_commit', 'off', true))
    insert into order_log (organization_id, order_id, refund_id, call, outcome, duration_ms, at)
    select $1, $2, $3, $4, $5, $6, db_clock() - make_interval(secs => $6::int / 1000.0) from quick`,
}
