// One connection to a replica, and the known state of its server. The state holds for all later reads on the same
// connection, because a replica only moves forward.
import type pg from 'pg'
import type { Clock } from '../../../lib/clock.ts'
import { clientConfig } from '../../../lib/pg/client-config.ts'
import type { DbOptions } from '../../../lib/pg/db.ts'
import { causeOf, sqlState } from '../../../lib/pg/errors.ts'
import type { Liveness } from '../../../lib/pg/liveness.ts'
import { openPipelines, type Read } from '../../../lib/pg/pipelines.ts'
import { wireOf } from '../../../lib/pg/protocol.ts'
import type { Heartbeat } from './heartbeat.ts'

/** The state shown by the connection. It is lost with the connection: the next one may lead to another server. */
export interface Known {
  /** The server has everything committed at the primary before this instant of the monotonic clock. */
  freshMs: number
  /** The replayed position of the primary's log. */
  position: bigint
  /** By project: the number of replayed erasing transactions, and a sync horizon that is valid here. */
  erasures: Map<string, bigint>
  horizons: Map<string, string>
}

export interface Lane {
  known(): Known | undefined
  /** Why the state is unknown, as the end of a sentence. */
  problem(): string
  /** Reads the state of the server; never throws. */
  poll(): Promise<void>
  read: Read
  /** Reads how many of the project's erasures have been replayed; never throws. */
  readErasures(projectId: string): Promise<void>
  close(): Promise<void>
}

interface LaneOptions {
  connect: DbOptions
  clock: Clock
  heartbeat: Heartbeat
  liveness: Liveness
  /** A server that does not return its state within this time is considered dead. */
  timeoutMs: number
  /** The newest migration that this program needs. */
  schemaVersion: number
}

export function openLane({ connect, clock, heartbeat, liveness, timeoutMs, schemaVersion }: LaneOptions): Lane {
  let known: Known | undefined
  let problem = 'has not responded yet'
  let client: pg.ClientBase | undefined
  /** What served the connection first, and whether something else has served it since. */
  let first: string | undefined
  let isPooled = false
  const guarded: Liveness['guarded'] = (used, send) => {
    client = used
    return liveness.guarded(used, send)
  }
  const forget = (why: string) => {
    known = undefined
    problem = why
  }
  const pipeline = openPipelines(clientConfig(connect), 1, guarded, () => {
    first = undefined
    isPooled = false
    forget('closed the connection')
  })

  async function poll(): Promise<void> {
    try {
      const [row] = await withTimeout(timeoutMs, clock, pipeline.read(STATE, []))
      if (!row) return forget('has shown no heartbeat yet')
      const [token, standby, position, version, served] = row.texts()
      first ??= served!
      isPooled ||= served !== first
      if (isPooled) return forget(POOLED)
      if (standby !== 't') return forget('is not a standby')
      if (Number(version) < schemaVersion) return forget(OLD_SCHEMA)
      const freshMs = heartbeat.since(token!) ?? Number.NEGATIVE_INFINITY
      known ??= { freshMs, position: 0n, erasures: new Map(), horizons: new Map() }
      known.freshMs = Math.max(known.freshMs, freshMs)
      known.position = BigInt(position!)
    } catch (error) {
      forget(reasonOf(error))
      // The statements behind this one would wait as long.
      if (error instanceof NoResponse && client) wireOf(client).stream.destroy()
    }
  }

  return {
    known: () => known,
    problem: () => problem,
    poll,
    read: pipeline.read,
    async readErasures(projectId) {
      const before = known
      const rows = await pipeline.read(ERASURES, [projectId]).catch(() => undefined)
      const number = BigInt(rows?.[0]?.text(0) ?? 0)
      if (before && before === known && number > (known.erasures.get(projectId) ?? 0n))
        known.erasures.set(projectId, number)
    },
    close: pipeline.close,
  }
}

const POOLED = 'is behind a pooler in transaction mode'
const OLD_SCHEMA = 'has not replayed the newest migration yet'

// The position is returned by a function, so it may be newer than the token; later reads are newer than both.
const STATE = {
  name: 'replica state',
  text: `
    select token, pg_is_in_recovery(), coalesce(pg_last_wal_replay_lsn() - '0/0', 0),
      (select max(version) from schema_migrations), concat(pg_postmaster_start_time(), ' ', pg_backend_pid())
    from replica_heartbeat`,
}

const ERASURES = { name: 'erasures', text: 'select number from erasure_marks where project_id = $1' }

class NoResponse extends Error {}

async function withTimeout<T>(ms: number, clock: Clock, promise: Promise<T>): Promise<T> {
  const settled = new AbortController()
  const timeout = clock.sleep(ms, settled.signal).then(() => {
    throw new NoResponse()
  })
  timeout.catch(() => {})
  try {
    return await Promise.race([promise, timeout])
  } finally {
    settled.abort()
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof NoResponse) return 'does not respond'
  const state = sqlState(error)
  if (state === '42P01' || state === '42703') return OLD_SCHEMA
  // Messages of PostgreSQL and of the network contain users and addresses, never the password.
  return `cannot be used (${causeOf(error)})`
}
