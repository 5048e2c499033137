// The replicated heartbeat: a token that is changed at the primary, and the instant from which this process knows it.
import type { Clock } from '../../../lib/clock.ts'
import type { Db } from '../../../lib/pg/db.ts'
import { sharedRun } from '../../../lib/shared-run.ts'

export interface Heartbeat {
  /** Changes the token, unless another process has just done so, and stores the present one. */
  beat(): Promise<void>
  /**
   * An instant of the monotonic clock: a server with this token has everything that was committed before it. Undefined for a
   * token that is too old or was never read at the primary.
   */
  since(token: string): number | undefined
}

/** `keepMs`: for how long tokens are remembered. */
export function openHeartbeat(db: Db, clock: Clock, everyMs: number, keepMs: number): Heartbeat {
  /** The tokens, ordered by their instants. */
  const known = new Map<string, number>()
  let last: { token: string; queriedMs: number } | undefined

  function remember(token: string, sinceMs: number): void {
    if (!known.has(token)) known.set(token, sinceMs)
    for (const [old, since] of known) {
      if (since > sinceMs - keepMs) break
      known.delete(old)
    }
  }

  async function updateToken(): Promise<void> {
    const queriedMs = clock.monotonicMs()
    const [row] = await db.query(BEAT, [`${everyMs} milliseconds`])
    if (!row) return void (await db.query(BEGIN))
    // Another process wrote this token after our last query, which returned an older one. For the first token there was
    // none.
    if (row.ours === 't') remember(row.token!, queriedMs)
    else if (last && last.token !== row.token) remember(row.token!, last.queriedMs)
    last = { token: row.token!, queriedMs }
  }

  return {
    // One at a time: each needs the result of the one before.
    beat: sharedRun(updateToken),
    since: (token) => known.get(token),
  }
}

const BEGIN = 'insert into replica_heartbeat default values on conflict do nothing'

// A clock set back must not stop the heartbeat.
const BEAT = {
  name: 'beat',
  text: `
    with beaten as (
      update replica_heartbeat set token = gen_random_uuid(), at = db_clock()
      where at not between db_clock() - $1::interval and db_clock() returning token)
    select coalesce(b.token, h.token) as token, b.token is not null as ours
    from replica_heartbeat h left join beaten b on true`,
}
