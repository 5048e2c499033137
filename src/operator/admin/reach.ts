// Who may call an operation: the right that its role must have, and the reach of the operator.
import {
  type Access,
  hasRight,
  type Reach,
  RIGHTS,
  type Right,
  reachesProject,
  reachOfOrganization,
} from '../../core/tenants/access.ts'
import { ApiError } from '../../lib/errors.ts'
import type { Param, Query } from '../../lib/pg/types.ts'
import { notFound } from './exist.ts'

/** What `requireRight` and `requireReach` need to know of an operation. */
interface Guarded {
  right: Right
  path: string
  narrows?: boolean
  ofOrganization?: boolean
}

/** Whether the operation is open to the operator, for some object at least: pages show only such links and forms. */
export function isOpenTo({ right, path, narrows = false, ofOrganization }: Guarded, access: Access): boolean {
  if (!hasRight(access, right)) return false
  if (!access.reach || narrows || (path.includes(':project_id') && !ofOrganization)) return true
  return (ofOrganization || path.includes(':organization_id')) && access.reach.organizations.length > 0
}

/** Throws a 403 unless the role has the right, and for what concerns the whole installation unless the reach is all of it. */
export function requireRight({ right, path, narrows = false }: Guarded, { role, reach }: Access): void {
  if (!hasRight({ role }, right))
    throw new ApiError(
      403,
      'role_missing',
      `The role "${role}" may not do this: it needs ${RIGHTS[right].join(' or ')}.`,
    )
  if (reach && !narrows && !/:(organization|project)_id/.test(path))
    throw new ApiError(
      403,
      'reach_missing',
      'This concerns the whole installation, and this operator reaches a part of it.',
    )
}

/**
 * Throws the 404 of an unknown tenant for one that the operator does not reach, and a 403 for what concerns the whole organization of a
 * project unless the operator reaches that.
 */
export async function requireReach(
  query: Query,
  { narrows = false, ofOrganization = false }: Guarded,
  { params, access: { reach } }: { params: Record<string, string>; access: Access },
): Promise<void> {
  if (!reach) return
  const { project_id, organization_id } = params
  if (project_id !== undefined && !(await reachesProject(query, reach, project_id)))
    throw notFound('project', project_id)
  if (ofOrganization && project_id !== undefined && !(await reachesOrganizationOf(query, reach, project_id)))
    throw new ApiError(
      403,
      'reach_missing',
      'This concerns the whole organization, and this operator reaches only some of its projects.',
    )
  if (organization_id === undefined) return
  const part = await reachOfOrganization(query, reach, organization_id)
  if (part === 'none' || (part === 'part' && !narrows)) throw notFound('organization', organization_id)
}

/** Whether the operator reaches the organization of the project as a whole: its merchant accounts are those of all of its projects. */
export async function reachesOrganizationOf(query: Query, reach: Reach | null, projectId: string): Promise<boolean> {
  if (!reach) return true
  const rows = await query('select 1 from projects where id = $1 and organization_id = any($2)', [
    projectId,
    reach.organizations,
  ])
  return rows.length > 0
}

/** The SQL expressions of a row's tenant; `project` may be left out for rows of an organization as a whole. */
export interface ReachColumns {
  organization?: string
  project?: string
  /** An organization that is within the reach if one of its projects is. */
  projectsOf?: string
}

/** Adds the reach to the values of a statement, and returns the condition for rows within it; undefined if that is all rows. */
export function reachCondition(
  reach: Reach | null,
  { organization, project, projectsOf }: ReachColumns,
  values: Param[],
): string | undefined {
  if (!reach) return undefined
  const among = (column: string, ids: readonly string[]) =>
    ids.length === 0 ? [] : [`${column} = any($${values.push(ids)}::text[])`]
  const conditions = [
    ...(organization === undefined ? [] : among(organization, reach.organizations)),
    ...(project === undefined ? [] : among(project, reach.projects)),
    ...(projectsOf === undefined
      ? []
      : among('w.id', reach.projects).map(
          (condition) => `exists (select from projects w where w.organization_id = ${projectsOf} and ${condition})`,
        )),
  ]
  return conditions.length > 0 ? `(${conditions.join(' or ')})` : 'false'
}
