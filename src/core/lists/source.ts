// The sources of the data API's reads: the primary, and replicas that are fresh enough for a request.
import type { Db } from '../../lib/pg/db.ts'
import { readHorizon } from './horizon.ts'
import { readVoidFrom } from './void.ts'

/** The server that one request reads from. */
export interface Source extends Pick<Db, 'read' | 'readLong' | 'fair'> {
  /** The project's sync horizon, valid for all later reads here; see `readHorizon`. */
  horizon(projectId: string): Promise<string>
  /** The instant from which the rows of a reader that has read up to `from` may be void; see `readVoidFrom`. */
  voidFrom(projectId: string, from: string | undefined): Promise<string | undefined>
  /** A mark of the state that was read, for the cursor of a new walk. Undefined without replicas, which need no mark. */
  mark(): Promise<bigint | undefined>
  /** Rejects if this source is behind the mark of a walk; a walk without a mark continues at the primary alone. */
  reach(mark: bigint | undefined): Promise<void>
}

export interface Reads {
  /** Runs the reads of a request for a project. `work` may run twice: first on a replica, then at the primary. */
  run<T>(projectId: string, work: (source: Source) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** The primary as a source. `mark` is passed if replicas are used. */
export function primarySource(db: Db, mark: Source['mark'] = async () => undefined): Source {
  const { read, readLong, fair } = db
  return {
    read,
    readLong,
    fair,
    horizon: (projectId) => readHorizon(db, projectId),
    voidFrom: (projectId, from) => readVoidFrom(db, projectId, from),
    mark,
    async reach() {},
  }
}

/** Sends all reads to the primary. */
export function readsAtPrimary(db: Db): Reads {
  const primary = primarySource(db)
  return { run: (_projectId, work) => work(primary), async close() {} }
}
