// Throws a 404 for a project that does not exist.
import { ApiError } from '../../lib/errors.ts'
import type { Query } from '../../lib/pg/types.ts'
import { shorten } from '../../lib/text.ts'

/** Returns the project's organization. */
export async function requireProject(query: Query, id: string): Promise<string> {
  const [row] = await query<{ organization_id: string }>('select organization_id from projects where id = $1', [id])
  if (!row) throw notFound('project', id)
  return row.organization_id
}

export const notFound = (what: string, id: string) =>
  new ApiError(404, 'object_not_found', `There is no ${what} "${shorten(id, 64)}".`)
