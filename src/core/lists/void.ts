// Finds out whether rows that a reader has read may no longer exist, because a failover or a restore lost commits.
import type { Db } from '../../lib/pg/db.ts'
import { instantFromPg } from '../../lib/time.ts'

export const VOID_HEADER = 'x-void-from'

/**
 * The instant from which the rows of a reader may be void, if the reader has read everything before the horizon `from`.
 * Undefined if it is not affected: it has read nothing that was lost, or has read everything again since.
 */
export async function readVoidFrom(db: Db, projectId: string, from: string | undefined): Promise<string | undefined> {
  return from === undefined ? undefined : firstOf(await db.read(OF_PROJECT, [projectId, from]))
}

/** The same for lists that cover all projects of an organization. */
export async function readOrganizationVoidFrom(
  db: Db,
  organizationId: string,
  from: string | undefined,
): Promise<string | undefined> {
  return from === undefined ? undefined : firstOf(await db.read(OF_ORGANIZATION, [organizationId, from]))
}

function firstOf([row]: Awaited<ReturnType<Db['read']>>): string | undefined {
  const at = row?.text(0)
  return at == null ? undefined : instantFromPg(at)
}

// A restored backup may be older than the project's first reader: then everything is void.
const VOID = `greatest(c.void_from, '1970-01-01T00:00:00Z')`

const OF_PROJECT = {
  name: 'void from',
  text: `select ${VOID} from project_clocks c where c.project_id = $1 and c.void_from < $2 and c.void_until >= $2`,
}

const OF_ORGANIZATION = {
  name: 'void from of organization',
  text: `
    select min(${VOID}) from projects p join project_clocks c on c.project_id = p.id
    where p.organization_id = $1 and c.void_from < $2 and c.void_until >= $2`,
}

/** The description of the header in OpenAPI. */
export const VOID_DESCRIPTION = {
  type: 'string',
  format: 'date-time',
  description:
    'Only if commits that you have read were lost: delete what you stored with `updated_at` at or after this instant, and read everything again.',
}
