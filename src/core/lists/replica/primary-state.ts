// The primary's state, needed by reads on the replica: one small statement, shared by all requests that wait for it.
import { batched } from '../../../lib/batching.ts'
import type { Db } from '../../../lib/pg/db.ts'

export interface PrimaryState {
  /** A log position at least as new as anything that was visible at the primary or a replica at the call. */
  position: bigint
  /** The number of erasing transactions of the project. */
  erasures: bigint
}

/** Returns the primary's state for a project, as of a moment after the call. */
export const primaryState = batched<string, PrimaryState>({
  tenant: (project) => project,
  async work(db: Db, projects) {
    const rows = await db.read(STATE, [[...new Set(projects)]])
    const position = BigInt(rows[0]!.text(0)!)
    const erasures = new Map(rows.map((row) => [row.text(1), row.text(2)]))
    return projects.map((project) => ({ position, erasures: BigInt(erasures.get(project) ?? 0) }))
  },
})

// The position of the newest log record, even if not on disk yet: asynchronous commits are visible before they are.
const STATE = {
  name: 'primary state',
  text: `
    select pg_current_wal_insert_lsn() - '0/0', m.project_id, m.number
    from (select) as always left join erasure_marks m on m.project_id = any($1)`,
}
