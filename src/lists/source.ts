// A source of reads for the data API: the primary, or a replica that is fresh enough for this request.
import type { Db } from '../lib/pg/db.ts'
import { readHorizon } from './horizon.ts'
import { readVoidFrom } from './void.ts'

/** One server to read from, for the length of a request. */
export interface Source extends Pick<Db, 'read' | 'readLong' | 'fair'> {
  /** The project's sync horizon, valid for all later reads here; see `readHorizon`. */
  horizon(projectId: string): Promise<string>
  /** From when on the rows of a reader that has read up to `from` may be void; see `readVoidFrom`. */
  voidFrom(projectId: string, from: string | undefined): Promise<string | undefined>
  /** A mark of the state read so far, for the cursor of a new walk. Undefined without replicas, where none is needed. */
  mark(): Promise<bigint | undefined>
  /** Rejects if this source is behind the mark of a walk; a walk without a mark continues at the primary alone. */
  reach(mark: bigint | undefined): Promise<void>
}

export interface Reads {
  /** Runs the reads of a request for a project. `work` may run twice: first on a replica, then at the primary. */
  run<T>(projectId: string, work: (source: Source) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** The primary as a source; `mark` is given where replicas are used. */
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
