// Limits how long a process that stops in the middle of a transaction, or is killed, keeps its locks.
import type { Query, Statement } from './types.ts'

// A frozen process may block others for 5 s at most, including the time until the server notices.
export const STALLED_MS = 4_000

/** Makes PostgreSQL end this transaction when its process sends nothing for 4 s. Waiting for a lock does not count. */
export async function endWhenStalled(query: Query): Promise<void> {
  await query(END_WHEN_STALLED)
}

const END_WHEN_STALLED: Statement = {
  name: 'end when stalled',
  text: `set local idle_in_transaction_session_timeout = ${STALLED_MS}`,
}

/**
 * Makes PostgreSQL end this connection's statement and locks within a second when its process is killed, instead of when the network
 * notices. Not every system can detect a lost client during a statement; there it makes no difference.
 */
export async function endWithClient(query: Query): Promise<void> {
  await query("set client_connection_check_interval = '1s'").catch(() => {})
}
