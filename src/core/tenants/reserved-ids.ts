// Reserved ids: of an organization and its projects while they are on their way here from another shard.
import { Refusal } from '../../lib/errors.ts'
import type { Query } from '../../lib/pg/types.ts'

type Kind = 'organization' | 'project'

// Lower numbers are taken, from the migrations (7482) to the figures (7493).
const LOCK_CLASS = 7494

const nameOf = (kind: Kind, id: string) => `arriving ${kind} ${id}`

/** Refuses an id that is reserved, and keeps it from being reserved until the end of the transaction. */
export async function refuseReserved(query: Query, kind: Kind, id: string): Promise<void> {
  const other = await reservedFor(query, kind, id)
  if (other !== undefined)
    throw new Refusal(
      `The ${kind} id "${id}" is in use: the organization "${other}" is being moved here from another shard. If that was broken off, run the move again, or with --give-up.`,
    )
}

/**
 * Reserves the ids of an organization and its projects. Call it in a transaction. Throws a `Refusal` where one of them is
 * in use, or reserved for another organization.
 */
export async function reserveIds(query: Query, organization: string, projects: readonly string[]): Promise<void> {
  const ids = [['organization', organization], ...projects.map((id) => ['project', id])] as [Kind, string][]
  for (const [kind, id] of ids) {
    const other = await reservedFor(query, kind, id)
    if (other !== undefined && other !== organization)
      throw new Refusal(
        `The ${kind} id "${id}" is reserved for the organization "${other}", which is being moved there too.`,
      )
    await query('insert into instance (name, value) values ($1, $2) on conflict do nothing', [
      nameOf(kind, id),
      organization,
    ])
  }
}

/**
 * The organization for which an id is reserved. Locks the id until the end of the transaction, so that it is not created and
 * reserved at the same time.
 */
async function reservedFor(query: Query, kind: Kind, id: string): Promise<string | undefined> {
  const name = nameOf(kind, id)
  await query(`select pg_advisory_xact_lock(${LOCK_CLASS}, hashtext($1))`, [name])
  const [row] = await query('select value from instance where name = $1', [name])
  return row?.value ?? undefined
}

/** Whether the ids of this organization are reserved. */
export async function isReserved(query: Query, organization: string): Promise<boolean> {
  const rows = await query('select 1 from instance where name = $1 and value = $2', [
    nameOf('organization', organization),
    organization,
  ])
  return rows.length > 0
}

/** All reserved ids. */
export async function readReserved(query: Query): Promise<{ organizations: string[]; projects: string[] }> {
  const rows = await query(`
    select split_part(name, ' ', 2) as kind, split_part(name, ' ', 3) as id from instance where name like 'arriving %'`)
  const ids = (wanted: Kind) => rows.flatMap(({ kind, id }) => (kind === wanted ? [id!] : []))
  return { organizations: ids('organization'), projects: ids('project') }
}

/** The ids of projects that are reserved for this organization. */
export async function reservedProjects(query: Query, organization: string): Promise<string[]> {
  const rows = await query(
    `select substr(name, 18) as id from instance where name like 'arriving project %' and value = $1`,
    [organization],
  )
  return rows.map(({ id }) => id!)
}

export async function releaseIds(query: Query, organization: string): Promise<void> {
  await query(`delete from instance where name like 'arriving %' and value = $1`, [organization])
}
