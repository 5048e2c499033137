// The directory: which shard has an organization, and to which organization a project or a secret key belongs.
import type { Query } from '../../lib/pg/types.ts'
import { type Mark, readArrivals, readMarks } from './mark.ts'
import { MOVING } from './shard.ts'

/** What one shard has. */
export interface Part {
  organizations: string[]
  /** The organization of each project. */
  projects: Map<string, string>
  /** The organization of each key, by the SHA-256 of the key in upper-case hex, as HAProxy computes it. */
  keys: Map<string, string>
  /** The organizations that are leaving this shard. */
  marks: Map<string, Mark>
  /** The moves that brought organizations to this shard. */
  arrivals: Map<string, string>
}

/** The shard of each organization, project and key; `MOVING` for a moment of a move. */
export interface Places {
  organizations: Map<string, string>
  projects: Map<string, string>
  keys: Map<string, string>
}

export interface Directory extends Places {
  /** Ids or a database that two shards have: a sentence for each. */
  conflicts: string[]
}

/** What the maps said before, for the shards that have not responded. */
export interface Before extends Places {
  silent: ReadonlySet<string>
}

/** Changes when an organization, project or key is added, and with every step of a move. Cheap to ask for. */
export async function stateOf(query: Query): Promise<string> {
  const [row] = await query(`
    select concat_ws(' ', (select count(*) || ' ' || coalesce(max(created_at)::text, '') from organizations),
      (select count(*) || ' ' || coalesce(max(created_at)::text, '') from projects),
      (select count(*) || ' ' || coalesce(max(created_at)::text, '') from secret_keys),
      (select string_agg(name || value, ' ' order by name) from instance where name like 'move %')) as state`)
  return row!.state!
}

export async function readPart(query: Query): Promise<Part> {
  const organizations = await query('select id from organizations')
  const projects = await query('select id, organization_id from projects')
  const keys = await query(`select upper(encode(hash, 'hex')) as hash, organization_id from secret_keys`)
  return {
    organizations: organizations.map(({ id }) => id!),
    projects: new Map(projects.map(({ id, organization_id }) => [id!, organization_id!])),
    keys: new Map(keys.map(({ hash, organization_id }) => [hash!, organization_id!])),
    marks: await readMarks(query),
    arrivals: await readArrivals(query),
  }
}

/**
 * The directory of all shards, by name. An organization that two have is where its move has brought it; without a mark its
 * requests are refused, because either may have what the other has not. A shard that has not responded keeps its entries.
 */
export function directoryOf(parts: ReadonlyMap<string, Part>, before?: Before): Directory {
  const organizations = new Map<string, string>()
  const conflicts: string[] = []
  for (const [shard, part] of parts) {
    for (const id of part.organizations) {
      const other = organizations.get(id)
      const place = other === undefined ? (part.marks.has(id) ? MOVING : shard) : placeOfBoth(id, parts)
      if (place === undefined) conflicts.push(`The organization "${id}" is on more than one shard.`)
      organizations.set(id, place ?? MOVING)
    }
  }
  for (const [id, place] of before?.organizations ?? []) {
    const kept = keptPlace(id, place, organizations.get(id), parts, before!.silent)
    if (kept !== undefined) organizations.set(id, kept)
  }
  const placesOf = (kind: 'projects' | 'keys') => {
    const owners = [...parts.values()].map((part) => part[kind])
    return placesBy(owners, organizations, before && { places: before[kind], silent: before.silent })
  }
  return {
    organizations,
    projects: placesOf('projects'),
    keys: placesOf('keys'),
    conflicts: [...conflicts, ...sharedProjects(parts)],
  }
}

/** The places of what belongs to organizations. Requests of an id that two organizations have are refused. */
function placesBy(
  owners: readonly ReadonlyMap<string, string>[],
  organizations: ReadonlyMap<string, string>,
  before?: { places: ReadonlyMap<string, string>; silent: ReadonlySet<string> },
): Map<string, string> {
  const places = new Map<string, string>()
  for (const part of owners) {
    for (const [id, owner] of part) {
      const isShared = owners.some((other) => (other.get(id) ?? owner) !== owner)
      places.set(id, isShared ? MOVING : organizations.get(owner)!)
    }
  }
  for (const [id, place] of before?.places ?? []) {
    if (!places.has(id)) places.set(id, before!.silent.has(place) ? place : MOVING)
  }
  return places
}

/** Where requests of an organization of the old maps go while a shard is silent; undefined: where the others say. */
function keptPlace(
  id: string,
  place: string,
  now: string | undefined,
  parts: ReadonlyMap<string, Part>,
  silent: ReadonlySet<string>,
): string | undefined {
  // No shard removes an organization but by a move: the silent one has got it.
  if (now === undefined) return silent.has(place) ? place : MOVING
  if (!silent.has(place) && place !== MOVING) return undefined
  const [mark] = [...parts.values()].flatMap(({ marks }) => marks.get(id) ?? [])
  if (mark) return silent.has(place) && mark.to === place ? place : undefined
  // Two may have it, and which of them is right only the silent one knows.
  return MOVING
}

function placeOfBoth(id: string, parts: ReadonlyMap<string, Part>): string | undefined {
  const having = [...parts].filter(([, { organizations }]) => organizations.includes(id))
  if (having.length !== 2) return undefined
  const [mark] = having.flatMap(([, { marks }]) => marks.get(id) ?? [])
  return having.find(([name, { arrivals }]) => name === mark?.to && arrivals.get(id) === mark.id)?.[0]
}

/** Project ids are unique across organizations: two organizations that have the same one cannot be on one shard. */
function sharedProjects(parts: ReadonlyMap<string, Part>): string[] {
  const owners = new Map<string, string>()
  return [...parts.values()].flatMap(({ projects }) =>
    [...projects].flatMap(([id, owner]) => {
      const other = owners.get(id) ?? owner
      owners.set(id, owner)
      return other === owner ? [] : [`The project id "${id}" is used by the organizations "${other}" and "${owner}".`]
    }),
  )
}
