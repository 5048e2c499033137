// Removes from a restored backup what had been copied of organizations that were being moved to this shard. The move has the rest.

import { readReserved, releaseIds } from '../../core/tenants/reserved-ids.ts'
import type { Query } from '../../lib/pg/types.ts'
import type { Catalogue } from './catalogue.ts'
import { qualified } from './sql-names.ts'

/** Call it before foreign keys are checked: the rows refer to an organization that is not there. */
export async function removeArriving(query: Query, { schema, tables }: Catalogue): Promise<void> {
  const { organizations, projects } = await readReserved(query)
  if (organizations.length === 0) return
  for (const { name, columns } of tables) {
    const [column, ids] = columns.includes('organization_id')
      ? ['organization_id', organizations]
      : ['project_id', projects]
    if (columns.includes(column)) await query(`delete from ${qualified(schema, name)} where ${column} = any($1)`, [ids])
  }
  for (const organization of organizations) await releaseIds(query, organization)
}
