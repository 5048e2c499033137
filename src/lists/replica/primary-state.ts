// What a read on the replica asks the primary meanwhile: one small statement, shared by all requests that wait for it.

import { batched } from '../../lib/batching.ts'
import type { Db } from '../../lib/pg/db.ts'

export interface PrimaryState {
  /** At least as far as whatever a reader could see at the primary, or on a replica, when it was asked. */
  position: bigint
  /** How many erasing transactions the project has had. */
  erasures: bigint
}

/** Answers the primary's state as of a moment after the call, for a project. */
export const primaryState = batched<string, PrimaryState>({
  group: () => 'all',
  async work(db: Db, projects) {
    const rows = await db.read(STATE, [[...new Set(projects)]])
    const position = BigInt(rows[0]!.text(0)!)
    const erasures = new Map(rows.map((row) => [row.text(1), row.text(2)]))
    return projects.map((project) => ({ position, erasures: BigInt(erasures.get(project) ?? 0) }))
  },
})

// The position is that of the newest record of the log, also of what is not on disk yet: asynchronous commits are seen before.
const STATE = {
  name: 'primary state',
  text: `
    select pg_current_wal_insert_lsn() - '0/0', m.project_id, m.number
    from (select) as always left join erasure_marks m on m.project_id = any($1)`,
}
