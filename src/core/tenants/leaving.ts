// Organizations that are being moved to another shard. An operator's change there would be lost, or only a part would be moved.
import { Refusal, tryLater } from '../../lib/errors.ts'
import type { Query } from '../../lib/pg/types.ts'

/** The name of the row in `instance` that marks the organization. Background work leaves out the organizations that have one. */
export const markName = (organization: string) => `move ${organization}`

/** The name of the row in `instance` that is there from the last step of the move: the other shard may have the organization. */
export const closedName = (organization: string) => `closed ${organization}`

/** SQL: whether the organization with this id is leaving this shard, or is being copied to it. */
export const isMoving = (organization: string) => exists(['move ', 'arriving organization '], organization)

/** SQL: whether the last step of its move has begun. `begin_write` asks for it too. */
export const isClosed = (organization: string) => exists(['closed '], organization)

// Ids have another collation than these names.
function exists(prefixes: string[], organization: string): string {
  const names = prefixes.map((prefix) => `('${prefix}' || ${organization}) collate "default"`)
  return `exists (select from instance i where i.name in (${names.join(', ')}))`
}

/** SQL: the projects of the organizations that are leaving, as an array, which is read once for a statement. */
export const LEAVING_PROJECTS = `array(
  select p.id from instance i join projects p on p.organization_id = substr(i.name, 6) collate "C" where i.name like 'move %')`

/** SQL: whether the key of this row was valid until a move ended it. The mark of the move has its id. */
export const isEndedByMove = (key: string) => `exists (select from instance i
  where i.name = ('move ' || ${key}.organization_id) collate "default" and i.value::jsonb -> 'keys' ? ${key}.id::text)`

/** For a request that came to this shard before the move, or through a directory that does not know of it yet. */
export const beingMoved = () =>
  Object.assign(tryLater('database_unavailable', 'The organization is being moved: try again.'), { isExpected: true })

/**
 * Refuses a change of an organization that is leaving, and keeps it from leaving until the end of the transaction. Does
 * nothing where there is no such organization or project.
 */
export async function refuseLeaving(
  query: Query,
  { organization_id, project_id }: { organization_id?: string | undefined; project_id?: string | undefined },
): Promise<void> {
  const organization = organization_id ?? (project_id === undefined ? undefined : await ownerOf(query, project_id))
  if (organization === undefined) return
  // First without the lock, which the program that moves it may hold for long.
  await refuseMarked(query, organization)
  await query('select 1 from organizations where id = $1 for key share', [organization])
  // In a later statement, which sees a mark that was set before the lock was free.
  await refuseMarked(query, organization)
}

async function ownerOf(query: Query, project: string): Promise<string | undefined> {
  const [row] = await query<{ organization_id: string }>('select organization_id from projects where id = $1', [
    project,
  ])
  return row?.organization_id
}

async function refuseMarked(query: Query, organization: string): Promise<void> {
  const [mark] = await query('select value from instance where name = $1', [markName(organization)])
  if (!mark) return
  const { to } = JSON.parse(mark.value!) as { to: string }
  throw new Refusal(
    `The organization "${organization}" is being moved to the shard ${to}: change it there when it has moved. If that was broken off, run the move again, or with --give-up.`,
  )
}

/** The project or organization of some work is gone: only a move to another shard removes one. */
export class TenantGone extends Error {}

/** Whether work failed because a move has removed its project or organization from this shard. */
export function isTenantGone(error: unknown): boolean {
  const { code, constraint = '' } = error as { code?: string; constraint?: string }
  return error instanceof TenantGone || (code === '23503' && /_(organization|project)_id_fkey$/.test(constraint))
}
