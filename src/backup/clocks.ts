// What a sync and a report were promised before the restore holds after it: their clocks never go back.
import type { Query } from '../lib/pg/types.ts'

/** Remembers the clocks of the database that is being replaced; to be called before it is emptied. */
export async function keepClocks(query: Query): Promise<void> {
  await query(`
    create temporary table former_project_clocks on commit drop as select project_id, floor from project_clocks`)
  await query(`
    create temporary table former_organization_clocks on commit drop as
    select organization_id, last_trx_created_at from organization_clocks`)
}

/**
 * Raises the clocks of what was restored: above what it had promised, what the replaced database had, and the present,
 * as readers may have been served after the backup was made. Whatever is written from now on lies behind their horizon.
 */
export async function raiseClocks(query: Query): Promise<void> {
  await query(`
    update project_clocks c set floor = greatest(c.floor, db_clock(),
      (select f.floor from former_project_clocks f where f.project_id = c.project_id))`)
  await query(`
    update organization_clocks c set last_trx_created_at = greatest(c.last_trx_created_at, db_clock(),
      (select f.last_trx_created_at from former_organization_clocks f where f.organization_id = c.organization_id))`)
}
