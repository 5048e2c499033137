// Throws a 404 for an organization, a project or a funnel that does not exist, and for ids that none can have.
import { notFound, requireProject } from '../../core/tenants/exist.ts'
import { ApiError } from '../../lib/errors.ts'
import type { Query } from '../../lib/pg/types.ts'

export { notFound, requireProject }

export async function requireOrganization(query: Query, id: string): Promise<void> {
  const rows = await query('select 1 from organizations where id = $1', [id])
  if (rows.length === 0) throw notFound('organization', id)
}

/** Until commit: of two concurrent requests that set the same, which may not exist yet, the second one sees what the first has set. */
export async function lockOrganization(query: Query, id: string): Promise<void> {
  await query('select 1 from organizations where id = $1 for no key update', [id])
}

/** Throws a 404 for a tenant in the path that does not exist. */
export async function requireTenant(
  query: Query,
  { organization_id, project_id }: { organization_id?: string | undefined; project_id?: string | undefined },
): Promise<void> {
  if (organization_id !== undefined) await requireOrganization(query, organization_id)
  if (project_id !== undefined) await requireProject(query, project_id)
}

export async function requireFunnel(query: Query, project: string, id: string): Promise<void> {
  const rows = await query('select 1 from funnels where project_id = $1 and id = $2', [project, id])
  if (rows.length === 0) throw notFound('funnel', id)
}

/** PostgreSQL stores no U+0000, so no object has it in its id. */
export function refuseNul(params: Record<string, string>): void {
  if (Object.values(params).some((value) => value.includes('\u0000')))
    throw new ApiError(404, 'object_not_found', 'There is no such object.')
}
