// Where the data API reads: the primary, or a replica that has shown to be new enough for this very request.
import type { Db } from '../lib/pg/db.ts'
import { readHorizon } from './horizon.ts'
import { readVoidFrom } from './void.ts'

/** One server to read from, for the length of a request. */
export interface Source extends Pick<Db, 'read' | 'readLong' | 'fair'> {
  /** The project's sync horizon, true for whatever is read here after it; see `readHorizon`. */
  horizon(projectId: string): Promise<string>
  /** From when on the rows of a reader that has read up to `from` may be void; see `readVoidFrom`. */
  voidFrom(projectId: string, from: string | undefined): Promise<string | undefined>
  /**
   * A mark of all that was read here so far, for the cursor of a walk that begins. Undefined where there is no replica,
   * and none is needed.
   */
  mark(): Promise<bigint | undefined>
  /** Rejects when a walk with this mark would go back in time here; one without a mark goes on at the primary alone. */
  reach(mark: bigint | undefined): Promise<void>
}

export interface Reads {
  /** Does a request's reading for a project. `work` may be done twice: first on a replica, then at the primary. */
  run<T>(projectId: string, work: (source: Source) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** The primary as a source; `mark` comes from the caller that knows the replicas. */
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

/** All reading goes to the primary. */
export function readsAtPrimary(db: Db): Reads {
  const primary = primarySource(db)
  return { run: (_projectId, work) => work(primary), async close() {} }
}
