// Removes an organization from a shard. Another shard must have a copy of it.
import { type Connection, removeRows } from './connection.ts'
import { removeArrival, removeMark } from './mark.ts'
import type { TenantTable } from './tenant-tables.ts'

/** Removes all rows of the organization. Call it in a transaction that has locked them. */
export async function removeOrganization(
  connection: Connection,
  tables: readonly TenantTable[],
  organization: string,
): Promise<void> {
  const { query } = connection
  await query('delete from key_usage where key_id in (select id from secret_keys where organization_id = $1)', [
    organization,
  ])
  await removeRows(connection, tables)
  await removeMark(query, organization)
  await removeArrival(query, organization)
}
