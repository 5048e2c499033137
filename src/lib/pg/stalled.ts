// Bounds how long a process that stopped in the middle of a transaction keeps its locks.
import type { Query } from './types.ts'

// A frozen process may hold up others for 5 s at most; what the server takes to notice is included.
const STALLED_MS = 4_000

/** From here on PostgreSQL ends this transaction when its process sends nothing for 4 s. Waiting for a lock does not count. */
export async function endWhenStalled(query: Query): Promise<void> {
  await query(`set local idle_in_transaction_session_timeout = ${STALLED_MS}`)
}
