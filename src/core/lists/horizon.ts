// The reader's side of the sync guarantee: the horizon before which all changes are visible and none will be added.
import type { Db } from '../../lib/pg/db.ts'
import { instantFromPg } from '../../lib/time.ts'

/**
 * The project's horizon as a canonical date-time: every change stamped before it is visible to a statement that begins
 * after this returns, and nothing will be stamped before it later. It only grows, and may lag by a second so that
 * reading seldom writes.
 *
 * Advancing it takes two statements. First the clock is stored as the floor of all writers to come; only when that is
 * committed, the running writers are read. A writer that is not among them began later, so it reads the new floor
 * and stamps nothing earlier; one that it sees stamps nothing earlier than the start of its transaction. In one
 * statement a writer could slip in between with the old floor, and under a clock set back its rows would be lost.
 *
 * A clock that jumps and comes back, even unnoticed between two readings, breaks nothing, because no process compares two
 * readings of it: only stored instants count. A horizon read while the clock was ahead is the floor of all later stamps. A
 * writer that began while it was ahead stamps nothing before its own start (`begin_write` includes `now()`), which is what
 * this takes for it. Rows stamped while it was ahead lie after the horizon, and are in a window once the clock has passed
 * them: late by the lead, but once. While the clock is behind, the horizon does not advance.
 */
export async function readHorizon(db: Db, projectId: string): Promise<string> {
  const [fresh] = await db.read(FRESH_HORIZON, [projectId])
  if (fresh) return instantFromPg(fresh.text(0)!)
  const [raised] = await db.read(RAISE_FLOOR, [projectId])
  const [advanced] = await db.read(ADVANCE_HORIZON, [projectId, raised!.text(0)!])
  return instantFromPg(advanced!.text(0)!)
}

const FRESH_HORIZON = {
  name: 'fresh horizon',
  text: `select horizon from project_clocks
         where project_id = $1 and horizon between db_clock() - interval '1 second' and db_clock()`,
}

// Under a clock set back all writers stamp the floor; raised by a microsecond it lets the horizon pass what they wrote.
const RAISE_FLOOR = {
  name: 'raise floor',
  text: `update project_clocks set floor = greatest(floor + interval '1 microsecond', db_clock())
         where project_id = $1 returning floor`,
}

// A writer whose start is not visible (a prepared transaction, a missing right, or one that ended between the two reads)
// counts as started in 1970, before all stamps, so that the horizon stays. A project without a horizon then gets this one.
// The clock's offset is for tests: if the clock was set back, the start of a writer is moved with it, never forward.
const ADVANCE_HORIZON = {
  name: 'advance horizon',
  text: `
    update project_clocks set horizon = greatest(horizon, least($2::timestamptz, (
      select min(coalesce(a.xact_start + least(db_clock() - clock_timestamp(), interval '0'), '1970-01-01T00:00:00Z'))
      from pg_locks l left join pg_stat_activity a using (pid)
      where l.locktype = 'advisory' and l.objsubid = 2 and l.granted
        and l.database = (select oid from pg_database where datname = current_database())
        and l.classid = write_lock_class()
        and l.objid = (select number from projects where id = $1))))
    where project_id = $1 returning horizon`,
}
