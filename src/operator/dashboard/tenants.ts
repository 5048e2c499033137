// The chosen project or organization of a page, and the others that the chooser offers.
import { ApiError } from '../../lib/errors.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Call, Item } from './call.ts'

export type Project = Item<'listProjects'>

/** What the chooser shows of an organization. */
export interface Named {
  id: string
  name: string
}

export type Organization = Item<'listOrganizations'>

export interface Tenants {
  /** The newest projects, at most a hundred; if there are more, also the chosen one and others of its organization. */
  projects: Project[]
  /** The newest organizations, and those of the projects. */
  organizations: Named[]
  /** Whether there are more than these; the page Projects finds all. */
  hasMoreTenants: boolean
  /** The chosen project; undefined if a whole organization is chosen, or if none exists. */
  project: Project | undefined
  /** The organization of the chosen project, or the one chosen as a whole; undefined if none exists. */
  organization: Organization | undefined
}

/** The prefix of an organization's id in the URL: all of its projects are shown together. */
const ALL = 'all:'
// The most that one call returns. In a longer list a search is faster.
const MAX_CHOICES = 100

/** The value of `project` in the URL that stands for all projects of an organization. */
export const wholeOf = ({ id }: Pick<Named, 'id'>) => ALL + id

export interface Wanted {
  /** The id of a project, or `all:ID` for an organization as a whole; null: none is chosen. Throws a 404 if it does not exist. */
  chosen: string | null
  /** The project that was shown last in this browser, which may not exist any longer. */
  last: string | undefined
}

/** Without a choice it is the project that was shown last, else the one with the most records: a new one is empty. */
export async function findTenants(db: Db, call: Call, { chosen: wanted, last }: Wanted): Promise<Tenants> {
  const [listed, listedOrganizations, chosen] = await Promise.all([
    call('listProjects', { query: { limit: MAX_CHOICES } }),
    call('listOrganizations', { query: { limit: MAX_CHOICES } }),
    wanted === null ? find(call, last ?? null).catch(ignoreMissing) : find(call, wanted),
  ])
  const project =
    chosen.project ?? (wanted === null && !chosen.organization ? await fullest(db, listed.data) : undefined)
  const organizations: Organization[] = listedOrganizations.data
  const ownerId = chosen.organization?.id ?? project?.organization_id ?? organizations[0]?.id
  const hasMoreTenants = listed.pagination.has_more || listedOrganizations.pagination.has_more
  const [organization, siblings] = await Promise.all([
    chosen.organization ?? organizations.find(({ id }) => id === ownerId) ?? findOrganization(call, ownerId),
    hasMoreTenants ? siblingsOf(call, ownerId!) : [],
  ])
  const projects = unique<Project>([...listed.data, ...siblings, ...(project ? [project] : [])])
  const owners = projects.map(({ organization_id: id }) => ({ id, name: '' }))
  return {
    projects,
    organizations: unique<Named>([...organizations, ...(organization ? [organization] : []), ...owners]),
    hasMoreTenants,
    project,
    organization,
  }
}

const ignoreMissing = (error: unknown): Partial<Pick<Tenants, 'project' | 'organization'>> => {
  if (error instanceof ApiError && error.status < 500) return {}
  throw error
}

async function fullest(db: Db, projects: Project[]): Promise<Project | undefined> {
  if (projects.length < 2) return projects[0]
  const [most] = await db.query(MOST, [projects.map(({ id }) => id)])
  return projects.find(({ id }) => id === most?.project_id) ?? projects[0]
}

const MOST = `
  select project_id from counts where project_id = any($1) and list in ('sessions', 'transactions') and field = '' and value = ''
  group by project_id having sum(n) > 0 order by sum(n) desc limit 1`

async function find(call: Call, wanted: string | null): Promise<Partial<Pick<Tenants, 'project' | 'organization'>>> {
  if (wanted === null) return {}
  if (wanted.startsWith(ALL)) return { organization: await findOrganization(call, wanted.slice(ALL.length)) }
  return { project: await call('getProject', { params: { project_id: wanted } }) }
}

const findOrganization = async (call: Call, id: string | undefined): Promise<Organization | undefined> =>
  id === undefined ? undefined : call('getOrganization', { params: { organization_id: id } })

async function siblingsOf(call: Call, organization_id: string): Promise<Project[]> {
  return (await call('listProjects', { query: { organization_id, limit: MAX_CHOICES } })).data
}

/** The first item of each id. */
const unique = <T extends { id: string }>(all: T[]): T[] => {
  const seen = new Set<string>()
  return all.filter(({ id }) => !seen.has(id) && seen.add(id))
}
