// The clocks of two shards: nothing is stamped earlier on the new one than on the old one, and what is due stays due.
import type { Connection } from './connection.ts'

export interface Clocks {
  /** The old shard's time, later than all that it has stamped. */
  at: string
  /** How far the new shard's clock is ahead, as an interval; negative if it is behind. */
  ahead: string
}

/** Reads both, the old shard's first: the time between the two readings counts as if the new one were ahead. */
export async function readClocks(from: Connection, to: Connection): Promise<Clocks> {
  const [there] = await from.query('select db_clock() as at')
  const [here] = await to.query(`select db_clock() - $1::timestamptz as ahead`, [there!.at!])
  return { at: there!.at!, ahead: here!.ahead! }
}

/** Raises the clocks of promises. Whatever the new shard's clock says, nothing is stamped earlier than on the old one. */
export async function raiseClocks(
  { query }: Connection,
  organization: string,
  projects: string[],
  { at }: Clocks,
): Promise<void> {
  await query(
    'update project_clocks set floor = greatest(floor, $2::timestamptz, db_clock()) where project_id = any($1)',
    [projects, at],
  )
  await query(
    `update organization_clocks set last_trx_created_at = greatest(last_trx_created_at, $2::timestamptz)
     where organization_id = $1`,
    [organization, at],
  )
  await query(
    'update credit_clocks set last_entry_at = greatest(last_entry_at, $2::timestamptz) where organization_id = $1',
    [organization, at],
  )
}

/**
 * Moves the times of the queues by the difference of the clocks. Otherwise a charge of unknown outcome would be looked up
 * hours late, or its age, by which it is judged whether its request can still arrive, would be that of another clock.
 */
export async function shiftQueues(
  { query }: Connection,
  organization: string,
  projects: string[],
  { ahead }: Clocks,
): Promise<void> {
  for (const table of ['orders', 'refunds'])
    await query(
      `update ${table} set begun_at = coalesce(begun_at, created_at) + $2::interval, lease_until = lease_until + $2::interval,
         next_look_at = next_look_at + $2::interval, not_found_at = not_found_at + $2::interval,
         handed_over_at = coalesce(handed_over_at, created_at) + $2::interval, pending_since = pending_since + $2::interval
       where organization_id = $1 and status = 'processing'`,
      [organization, ahead],
    )
  await query(
    `update credit_top_ups set due_at = due_at + $2::interval, lease_until = lease_until + $2::interval
     where organization_id = $1 and due_at is not null`,
    [organization, ahead],
  )
  await query(
    `update webhook_deliveries set next_attempt_at = next_attempt_at + $2::interval,
       scheduled_at = coalesce(scheduled_at, created_at) + $2::interval
     where project_id = any($1) and status = 'pending'`,
    [projects, ahead],
  )
  await query(
    `update webhook_endpoints set failing_since = failing_since + $2::interval
     where project_id = any($1) and failing_since is not null`,
    [projects, ahead],
  )
}
