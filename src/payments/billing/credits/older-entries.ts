// Completes entries that were written by a program from before migration 175, during an upgrade or after a way back: without their project
// and their stamp no sync gets them.
import { isMoving } from '../../../core/tenants/leaving.ts'
import type { Db } from '../../../lib/pg/db.ts'
import type { Statement } from '../../../lib/pg/types.ts'

/** Completes the entries of one project, if there are any. */
export async function completeEntries({ query }: Pick<Db, 'query'>): Promise<void> {
  const [found] = await query<{ organization_id: string; project_id: string }>(FIND)
  if (found) await query(COMPLETE, [found.organization_id, found.project_id])
}

const FIND: Statement = {
  name: 'find credit entries without a project',
  text: `
    select e.organization_id, c.project_id from credit_entries e
    join customers c on c.organization_id = e.organization_id and c.external_id = e.external_id
    where e.project_id is null and not ${isMoving('e.organization_id')} limit 1`,
}

const COMPLETE: Statement = {
  name: 'complete credit entries',
  text: `
    update credit_entries e set project_id = c.project_id, updated_at = w.stamp
    from customers c, (select begin_write($2) as stamp) w
    where e.organization_id = $1 and e.project_id is null
      and c.organization_id = e.organization_id and c.external_id = e.external_id and c.project_id = $2`,
}
