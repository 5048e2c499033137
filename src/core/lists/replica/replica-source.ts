// The reads of one request on the replica, checked against the state that its connection has shown.
import type { Clock } from '../../../lib/clock.ts'
import type { Db } from '../../../lib/pg/db.ts'
import type { Read } from '../../../lib/pg/pipelines.ts'
import { instantFromPg } from '../../../lib/time.ts'
import { readHorizon } from '../horizon.ts'
import type { Source } from '../source.ts'
import { readVoidFrom } from '../void.ts'
import type { Known, Lane } from './lane.ts'
import type { PrimaryState } from './primary-state.ts'
import type { SlowLanes } from './slow-lanes.ts'

export interface Following {
  /** The primary. */
  db: Db
  clock: Clock
  maxLagMs: number
  slow: SlowLanes
  /** Reads the newest token of the heartbeat. */
  beat: () => Promise<void>
  stateOfPrimary: (projectId: string) => Promise<PrimaryState>
}

/** The replica is behind the state that a request needs. */
export class Behind extends Error {
  readonly why: 'late' | 'walk'
  constructor(why: 'late' | 'walk') {
    super('The replica is behind.')
    this.why = why
  }
}

/** `erasures`: the number of erasing transactions of the project that are included in the reads. */
export interface ReplicaSource extends Source {
  erasures(): bigint
}

const TRIES = 3

export const isFresh = ({ freshMs }: Known, { clock, maxLagMs }: Pick<Following, 'clock' | 'maxLagMs'>) =>
  clock.monotonicMs() - freshMs <= maxLagMs

/** Every read of the source throws `Behind` if its result may be too old. */
export function openReplicaSource(following: Following, lane: Lane, projectId: string): ReplicaSource {
  const { db, slow, stateOfPrimary } = following
  const known = lane.known()
  let erasures = replayed(known, projectId)
  let walkMark: bigint | undefined
  let promisedHorizon: string | undefined

  const check = (now: Known | undefined): Known => {
    if (!now || !isFresh(now, following)) throw new Behind('late')
    if (walkMark !== undefined && now.position < walkMark) throw new Behind('walk')
    return now
  }
  const read: Read = async (statement, params, take) => {
    // A reconnected lane may lead to another server now.
    if (lane.known() !== known) throw new Behind('late')
    check(known)
    return lane.read(statement, params, take)
  }
  /** Another connection may lead to another replica, whose state has to be read again. */
  const verify = async (other: Lane): Promise<void> => {
    await other.poll()
    for (let tried = 0; tried < TRIES; tried += 1) {
      const shown = other.known()
      if (!shown || isFresh(shown, following)) break
      // It may show a token of another process that is unknown here yet, and on a busy machine the next one as well.
      await following.beat()
      await other.poll()
    }
    await other.readErasures(projectId)
    const now = check(other.known())
    if (promisedHorizon !== undefined) await showHorizon(now, other.read, projectId, promisedHorizon)
    const there = replayed(now, projectId)
    if (there < erasures) erasures = there
  }
  const readLong: Read = async (statement, params, take) => {
    const rows = await slow.use(async (one) => {
      await verify(one)
      return one.read(statement, params, take)
    })
    if (!rows) throw new Behind('late')
    return rows
  }

  return {
    read,
    readLong,
    fair: db.fair,
    async horizon() {
      promisedHorizon = await readHorizon(db, projectId)
      await showHorizon(check(known), read, projectId, promisedHorizon)
      return promisedHorizon
    },
    voidFrom: (_projectId, from) => readVoidFrom(db, projectId, from),
    mark: async () => (await stateOfPrimary(projectId)).position,
    async reach(mark) {
      if (mark === undefined) throw new Behind('walk')
      walkMark = mark
      // It may have advanced since its last check.
      if (known && known.position < mark) await lane.poll()
      check(known)
    },
    erasures: () => erasures,
  }
}

/** Rejects when the connection does not show the horizon yet. */
async function showHorizon(known: Known, read: Lane['read'], projectId: string, horizon: string): Promise<void> {
  if ((known.horizons.get(projectId) ?? '') >= horizon) return
  const [row] = await read(HORIZON, [projectId, horizon])
  if (!row) throw new Behind('late')
  known.horizons.set(projectId, instantFromPg(row.text(0)!))
}

const replayed = (known: Known | undefined, projectId: string) => known?.erasures.get(projectId) ?? 0n

// The primary stores a horizon when every writer before it has ended. Their commits come first in the log, so a replica
// with this horizon has them, too, for every later statement.
const HORIZON = {
  name: 'shown horizon',
  text: 'select horizon from project_clocks where project_id = $1 and horizon >= $2',
}
