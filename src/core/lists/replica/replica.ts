// Reads from a streaming replica if it is provably fresh enough; otherwise repeats the read at the primary.
import type { Clock } from '../../../lib/clock.ts'
import { clientConfig } from '../../../lib/pg/client-config.ts'
import type { Db, DbOptions } from '../../../lib/pg/db.ts'
import { isTimeout } from '../../../lib/pg/errors.ts'
import { openLiveness } from '../../../lib/pg/liveness.ts'
import { primarySource, type Reads, type Source } from '../source.ts'
import { startBeating } from './beating.ts'
import { openHeartbeat } from './heartbeat.ts'
import { type Lane, openLane } from './lane.ts'
import { primaryState } from './primary-state.ts'
import { Behind, type Following, isFresh, openReplicaSource } from './replica-source.ts'
import { openSlowLanes } from './slow-lanes.ts'

export interface ReplicaOptions {
  /** The primary. */
  db: Db
  /** The replica. */
  connect: DbOptions
  clock: Clock
  /** Above this lag reads go to the primary. */
  maxLagMs: number
  /** The newest migration that this program needs. */
  schemaVersion: number
  log: { info(message: string): void; warn(message: string): void }
  /** Called for every request: where it was finally read, and why. */
  observe: (target: 'replica' | 'primary', why: Why) => void
}

/**
 * `fresh`: the replica was fresh enough. `late`: it is too far behind, or unreachable. `walk`: it is behind an earlier page
 * of this walk. `erasure`: it is behind an erasure. `refused`: the read failed there, possibly because the object does not
 * exist.
 */
export type Why = 'fresh' | 'late' | 'walk' | 'erasure' | 'refused'

export interface Replica extends Reads {
  usable(): boolean
  /** The age of the newest state that the replica has shown. */
  lagMs(): number
}

const FAST_LANES = 2
// When all are busy, the primary takes the next long read.
const SLOW_LANES = 4
// The shown state may be two beats old, or three if another process writes the heartbeat.
const BEATS_WITHIN_LAG = 8
const LONGEST_BEAT_MS = 100
// A replica that does not return its state within this time is dead or overloaded.
const STATE_TIMEOUT_MS = 1500

export function openReplica({ db, connect, clock, maxLagMs, schemaVersion, log, observe }: ReplicaOptions): Replica {
  const everyMs = Math.min(LONGEST_BEAT_MS, Math.ceil(maxLagMs / BEATS_WITHIN_LAG))
  const heartbeat = openHeartbeat(db, clock, everyMs, maxLagMs)
  const liveness = openLiveness(clientConfig(connect))
  const open = () => openLane({ connect, clock, heartbeat, liveness, timeoutMs: STATE_TIMEOUT_MS, schemaVersion })
  const lanes = Array.from({ length: FAST_LANES }, open)
  const slow = openSlowLanes(open, SLOW_LANES)
  const stateOfPrimary = (projectId: string) => primaryState(db, projectId)
  const following: Following = { db, clock, maxLagMs, slow, beat: heartbeat.beat, stateOfPrimary }
  const pick = picker(lanes, following)
  const usable = () => pick() !== undefined
  const beating = startBeating({ clock, everyMs, heartbeat, lanes, usable, log })
  return {
    async run(projectId, work) {
      const lane = pick()
      const tried = lane ? await tryReplica(following, lane, projectId, work) : { why: 'late' as const }
      if (tried.why === 'erasure') for (const one of lanes) void one.readErasures(projectId)
      observe('result' in tried ? 'replica' : 'primary', tried.why)
      return 'result' in tried ? tried.result : work(atPrimary(following, projectId))
    },
    usable,
    lagMs: beating.lagMs,
    async close() {
      await beating.stop()
      liveness.stop()
      await Promise.all([...lanes.map((lane) => lane.close()), slow.close()])
    },
  }
}

/** Returns the fresh lanes in turn. */
function picker(lanes: Lane[], following: Following): () => Lane | undefined {
  let turn = 0
  const usable = (lane: Lane) => {
    const known = lane.known()
    return known !== undefined && isFresh(known, following)
  }
  return () => {
    turn = (turn + 1) % lanes.length
    return [lanes[turn]!, ...lanes].find(usable)
  }
}

type Tried<T> = { why: Why } | { why: 'fresh'; result: T }

async function tryReplica<T>(
  following: Following,
  lane: Lane,
  projectId: string,
  work: (source: Source) => Promise<T>,
): Promise<Tried<T>> {
  const source = openReplicaSource(following, lane, projectId)
  try {
    // Requested after the request has arrived and in parallel with the read: includes every erasure confirmed before it.
    const [result, { erasures }] = await Promise.all([work(source), following.stateOfPrimary(projectId)])
    return erasures <= source.erasures() ? { why: 'fresh', result } : { why: 'erasure' }
  } catch (error) {
    // A read that times out here would time out at the primary, too.
    if (isTimeout(error)) throw error
    return { why: error instanceof Behind ? error.why : 'refused' }
  }
}

/** Also reads the mark, because a walk that begins at the primary may continue at the replica. */
function atPrimary({ db, stateOfPrimary }: Following, projectId: string): Source {
  return primarySource(db, () =>
    stateOfPrimary(projectId).then(
      ({ position }) => position,
      () => undefined,
    ),
  )
}
