// Keeps the promises of syncs and reports across a restore: their clocks never go back.
import type { Query } from '../../lib/pg/types.ts'

/** Saves the clocks of the database that is being replaced; call it before the database is emptied. */
export async function keepClocks(query: Query): Promise<void> {
  await query(`
    create temporary table former_project_clocks on commit drop as select project_id, floor, horizon from project_clocks`)
  await query(`
    create temporary table former_organization_clocks on commit drop as
    select organization_id, last_trx_created_at from organization_clocks`)
  await query(`
    create temporary table former_credit_clocks on commit drop as select organization_id, last_entry_at from credit_clocks`)
  await query('create temporary table former_commit_beat on commit drop as select * from commit_beat')
}

/**
 * Raises the restored clocks above their own value, that of the replaced database and the present, because readers may
 * have been served after the backup was made. All later writes are stamped after the horizon of these readers, which does not go
 * back, not even where the machine's clock was set back in between. `X-Void-From`
 * marks as void what they read since the backup's own horizon.
 */
export async function raiseClocks(query: Query): Promise<void> {
  await query(`
    update project_clocks c set floor = r.floor, horizon = r.horizon,
      void_from = least(c.void_from, c.horizon), void_until = greatest(c.void_until, r.floor)
    from (
      select c.project_id, greatest(c.floor, db_clock(), f.floor) as floor, greatest(c.horizon, f.horizon) as horizon
      from project_clocks c left join former_project_clocks f using (project_id)) r
    where r.project_id = c.project_id`)
  // Of another server's beats nothing is known here. A new generation of our own is no loss to the processes that go on.
  await query('delete from commit_beat')
  await query(`
    insert into commit_beat (generation, timeline, waits, at, safe_until)
    select greatest(f.generation, (select max(generation) from failovers)) + 1, f.timeline, f.waits, db_clock(), safe_until()
    from former_commit_beat f`)
  await query(`
    update organization_clocks c set last_trx_created_at = greatest(c.last_trx_created_at, db_clock(),
      (select f.last_trx_created_at from former_organization_clocks f where f.organization_id = c.organization_id))`)
  await query(`
    update credit_clocks c set last_entry_at = greatest(c.last_entry_at, db_clock(),
      (select f.last_entry_at from former_credit_clocks f where f.organization_id = c.organization_id))`)
}
