// Other ids of profiles: of profiles that were merged into them, and of their customers at the payment provider.
import type { Query } from '../../lib/pg/types.ts'

/** The profiles that these ids stand for, by id; ids that are no aliases are missing. */
export async function targetsOf(query: Query, projectId: string, ids: string[]): Promise<Map<string, string>> {
  const rows = await query('select alias, profile_id from profile_aliases where project_id = $1 and alias = any($2)', [
    projectId,
    ids,
  ])
  return new Map(rows.map(({ alias, profile_id }) => [alias!, profile_id!]))
}

/** The other ids of these profiles. */
export async function aliasesOf(query: Query, projectId: string, ids: string[]): Promise<string[]> {
  const rows = await query('select alias from profile_aliases where project_id = $1 and profile_id = any($2)', [
    projectId,
    ids,
  ])
  return rows.map(({ alias }) => alias!)
}
