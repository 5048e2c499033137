// Links that wait for a record: what was named before it came is linked when it comes.
import { targetsOf } from '../../core/erasure/aliases.ts'
import { mergeIn, type Pair } from '../../core/people/merge.ts'
import type { Kind, Tenant } from '../../core/records/record.ts'
import type { Query } from '../../lib/pg/types.ts'
import { linkRecords } from './link-records.ts'
import { staged } from './staging.ts'

export interface WaitingLink {
  /** `profile`: to be merged into the named one, or into that of the named session. */
  record: 'profile' | 'subscription' | 'transaction'
  id: string
  field: 'profile_id' | 'session_id' | 'funnel_id' | 'experiment_id'
  /** The id of the record that it waits for. */
  named: string
}

/** Lets these links wait; a later name replaces an earlier one that was never found. */
export async function addWaiting(query: Query, projectId: string, links: WaitingLink[]): Promise<void> {
  if (links.length === 0) return
  await query(
    `insert into waiting_links (project_id, record, id, field, named, created_at)
     select distinct on (record, id, field) $1, record, id, field, named, db_clock()
     from json_populate_recordset(null::waiting_links, $2) on conflict (project_id, record, id, field)
     do update set named = excluded.named where waiting_links.named <> excluded.named`,
    [projectId, JSON.stringify(links)],
  )
}

// The most links in one statement.
const BATCH = 1000
const TABLES = {
  profile: 'profile_id',
  session: 'session_id',
  funnel: 'funnel_id',
  experiment: 'experiment_id',
} as const

/** Whether links of the project wait for a record. */
export async function isAnyLinkWaiting(query: Query, { project_id }: Tenant): Promise<boolean> {
  const [found] = await query(`select exists (select from waiting_links where project_id = ${project_id}) as any`)
  return found!.any === 't'
}

/** In the transaction of an import, after its rows: links to what it brought. Returns the profiles that were merged. */
export async function linkBrought(query: Query, kinds: readonly Kind[], { project_id }: Tenant, writing: Linking) {
  const merged: Pair[] = []
  for (const kind of kinds) {
    const field = TABLES[kind.name as keyof typeof TABLES]
    if (field === undefined) continue
    for (;;) {
      // Staged are now only the rows that were new.
      const links = await query<Row>(`
        select l.record, l.id, l.field, l.named from ${staged(kind)} s
        join waiting_links l on l.project_id = ${project_id} and l.field = '${field}' and l.named = s.id limit ${BATCH}`)
      if (links.length === 0) break
      merged.push(...(await link(query, writing, links as WaitingLink[])))
    }
  }
  return merged
}

/** Links these records to what they name, as far as it is stored. Returns the profiles that were merged. */
export async function linkStored(query: Query, writing: Linking, records: { record: string; id: string }[]) {
  const merged: Pair[] = []
  for (let at = 0; at < records.length; at += BATCH) {
    const batch = records.slice(at, at + BATCH)
    const links = await query<Row>(FOUND, [
      writing.projectId,
      batch.map(({ record }) => record),
      batch.map(({ id }) => id),
    ])
    merged.push(...(await link(query, writing, links as WaitingLink[])))
  }
  return merged
}

interface Linking {
  projectId: string
  /** The least stamp, from `begin_write`. */
  base: string
}

type Row = { record: string; id: string; field: string; named: string }

// A merged profile that is named is there, too.
const FOUND = `
  select l.record, l.id, l.field, l.named from unnest($2::text[], $3::text[]) given (record, id)
  join waiting_links l on l.project_id = $1 and l.record = given.record and l.id = given.id
  where case l.field
    when 'profile_id' then exists (select from profiles p where p.project_id = $1 and p.id = l.named)
      or exists (select from profile_aliases a where a.project_id = $1 and a.alias = l.named)
    when 'session_id' then exists (select from sessions s where s.project_id = $1 and s.id = l.named)
    when 'funnel_id' then exists (select from funnels f where f.project_id = $1 and f.id = l.named)
    else exists (select from experiments e where e.project_id = $1 and e.id = l.named) end`

async function link(query: Query, { projectId, base }: Linking, links: WaitingLink[]): Promise<Pair[]> {
  if (links.length === 0) return []
  const records = links.filter(({ record }) => record !== 'profile')
  await linkRecords(query, projectId, base, records)
  const merged: Pair[] = []
  for (const one of links.filter(({ record }) => record === 'profile')) {
    const pair = await pairOf(query, projectId, one)
    if (!pair) continue
    await mergeIn(query, pair)
    merged.push(pair)
  }
  await query(
    `delete from waiting_links l using unnest($2::text[], $3::text[], $4::text[]) gone (record, id, field)
     where l.project_id = $1 and l.record = gone.record and l.id = gone.id and l.field = gone.field`,
    [projectId, links.map(({ record }) => record), links.map(({ id }) => id), links.map(({ field }) => field)],
  )
  return merged
}

/** The profiles to merge; undefined if they are one already, or the one that would end is erased or not there. */
async function pairOf(query: Query, projectId: string, { id, field, named }: WaitingLink): Promise<Pair | undefined> {
  const [found] = await query(
    field === 'session_id'
      ? 'select profile_id as into from sessions where project_id = $1 and id = $2'
      : 'select $2 as into from projects where id = $1',
    [projectId, named],
  )
  if (!found) return undefined
  const aliases = await targetsOf(query, projectId, [id, found.into!])
  const into = aliases.get(found.into!) ?? found.into!
  const from = aliases.get(id) ?? id
  const rows = await query('select id, anonymized_at from profiles where project_id = $1 and id = any($2)', [
    projectId,
    [from, into],
  ])
  const own = rows.find((row) => row.id === from)
  const isThere = rows.some((row) => row.id === into)
  // An alias stays with the profile that it stands for.
  if (aliases.has(id) || from === into || !isThere || !own || own.anonymized_at !== null) return undefined
  return { projectId, from, into }
}
