// Puts a customer of Stripe together with the profile that the project has of the same person, so that no second one is made.
import { isAddress } from '../../../core/erasure/twins.ts'
import { finishMerges, mergeIn, type Pair } from '../../../core/people/merge.ts'
import { IMPORT_TURN } from '../../../core/tenants/import-turn.ts'
import { endWhenStalled } from '../../../lib/pg/stalled.ts'
import type { Query } from '../../../lib/pg/types.ts'
import { fold } from '../../../lib/text.ts'
import { inherit } from '../link-records.ts'
import type { Importing } from '../load.ts'
import { addWaiting, linkStored, type WaitingLink } from '../waiting.ts'
import type { Line, Target } from './convert.ts'
import type { Names } from './names.ts'

type Shared = Pick<Importing, 'db' | 'audit'>

/** A person as in Stripe's objects: `id` is that of the profile that an import makes. */
interface Person {
  id: string
  externalId: string | null
  email: string | null
  names: Names
}

/**
 * Before lines are imported: the ids of customers whose profile is known stand for it from now on, so that the lines are
 * taken as lines of that profile. One that was made before is merged into it.
 */
export async function linkPeople(app: Shared, target: Target, lines: readonly Line[]): Promise<void> {
  const { db } = app
  const people = peopleOf(lines)
  if (people.length === 0) return
  const { projectId } = target
  const found = await profilesOf(db.query, target, people)
  if (found.length > 0) {
    const merged = await db.tx(async (query) => {
      await endWhenStalled(query)
      await query(`select pg_advisory_xact_lock${IMPORT_TURN}`, [target.organizationId])
      return takeAs(query, projectId, found)
    })
    await finishMerges(app, merged)
  }
  await addWaiting(db.query, projectId, await waitingFor(db.query, projectId, people, found))
}

/** After lines were imported: links subscriptions and transactions to what they name, now or when it comes. */
export async function linkNames(app: Shared, { projectId, organizationId }: Target, lines: readonly Line[]) {
  const { db } = app
  const records = lines.filter(({ record }) => record === 'subscription' || record === 'transaction')
  if (records.length === 0) return
  const links = linksIn(records)
  const idsOf = (kind: string) => records.filter(({ record }) => record === kind).map(({ data }) => String(data.id))
  const merged = await db.tx(async (query) => {
    await endWhenStalled(query)
    await query(`select pg_advisory_xact_lock${IMPORT_TURN}`, [organizationId])
    const [begun] = await query<{ base: string }>('select begin_write($1) as base', [projectId])
    const { base } = begun!
    await addWaiting(query, projectId, await unlinked(query, projectId, links))
    const merged = await linkStored(query, { projectId, base }, links)
    await inherit(query, projectId, base, idsOf('transaction'), [])
    return merged
  })
  await finishMerges(app, merged)
}

/** What the names of subscriptions and transactions link them to. */
export const linksIn = (lines: readonly Line[]): WaitingLink[] =>
  lines.flatMap(({ record, data, names = {} }) => {
    if (record !== 'subscription' && record !== 'transaction') return []
    return FIELDS.flatMap(([kind, field]) =>
      names[kind] === undefined ? [] : [{ record, id: String(data.id), field, named: names[kind] } as const],
    )
  })

const FIELDS = [
  ['session', 'session_id'],
  ['funnel', 'funnel_id'],
  ['experiment', 'experiment_id'],
] as const

/** The people of these lines; what a subscription names is nearer than what a payment or a customer names. */
export function peopleOf(lines: readonly Line[]): Person[] {
  const people = new Map<string, Person>()
  const order = ['subscription', 'transaction', 'customer']
  const about = lines.filter(({ record }) => order.includes(record))
  for (const { record, data, names } of about.sort((a, b) => order.indexOf(a.record) - order.indexOf(b.record))) {
    if (typeof data.profile_id !== 'string') continue
    const person = people.get(data.profile_id) ?? { id: data.profile_id, externalId: null, email: null, names: {} }
    people.set(person.id, person)
    person.names = { ...names, ...person.names }
    if (record === 'customer') {
      person.externalId = String(data.external_id)
      person.email = (data.email as string | null) ?? null
    }
  }
  return [...people.values()]
}

/** How a person is recognized, the surest first, as the statement numbers it. */
const BY = ['customer', 'customer', 'metadata', 'session', 'email'] as const

export interface Recognized extends Pair {
  by: (typeof BY)[number]
}

/** The profile of each person that has one of another id: by the billing customer, by metadata, and by e-mail if asked for. */
export async function profilesOf(query: Query, { organizationId, projectId, matchEmail }: Target, people: Person[]) {
  const rows = await query<{ id: string; into: string; place: string }>(PROFILES, [
    projectId,
    organizationId,
    people.map(({ id }) => id),
    people.map(({ externalId }) => externalId),
    people.map(({ names }) => names.profile ?? null),
    people.map(({ names }) => names.session ?? null),
    people.map(({ email }) => (matchEmail && email ? fold(email) : null)),
  ])
  return rows.map(({ id, into, place }): Recognized => ({ projectId, from: id, into, by: BY[Number(place) - 1]! }))
}

const TARGET =
  'coalesce((select a.profile_id from profile_aliases a where a.project_id = $1 and a.alias = p.named), p.named)'

/** SQL: these rows for each of `from`, found by their index: `offset 0` keeps the planner, which may not know the tables, from joining. */
const each = (from: string, rows: string) => `${from} cross join lateral (${rows} offset 0) o`

const OF_ADDRESS = `e.project_id = $1 and e.email_folded = p.email and ${isAddress('p.email')} and e.id <> p.id`

// A person that has an alias already keeps it. By e-mail: exactly one profile has the address, and no other customer of Stripe.
const PROFILES = `
  with given as materialized (
    select * from unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
      p (id, external_id, named, session_id, email)
  ), person as materialized (
    select p.* from ${each(
      'given p',
      `select exists (select from profile_aliases a where a.project_id = $1 and a.alias = p.id)
         or exists (select from profiles o where o.project_id = $1 and o.id = p.id and o.anonymized_at is not null) as is_settled`,
    )} where not o.is_settled
  ), candidate as materialized (
    select p.id, o.profile_id as into, 1 as place from ${each(
      'person p',
      'select profile_id from customers c where c.organization_id = $2 and c.external_id = p.external_id and c.project_id = $1',
    )}
    union all select p.id, o.profile_id, 2 from ${each(
      'person p',
      `select c.profile_id from (
         select distinct r.external_id from report_transactions r
         where r.organization_id = $2 and r.psp_customer_id = p.id offset 0) r
       cross join lateral (
         select profile_id from customers c
         where c.organization_id = $2 and c.external_id = r.external_id and c.project_id = $1 offset 0) c`,
    )}
    union all select p.id, ${TARGET}, 3 from person p where p.named is not null
    union all select p.id, o.profile_id, 4 from ${each(
      'person p',
      'select profile_id from sessions s where s.project_id = $1 and s.id = p.session_id',
    )}
    union all select p.id, o.id, 5 from ${each(
      'person p',
      `select min(e.id) as id from profiles e where ${OF_ADDRESS} and p.email is not null having count(*) = 1
         and (select count(*) from person q where q.email = p.email) = 1`,
    )} where not exists (select from profile_aliases a
      where a.project_id = $1 and a.profile_id = o.id and a.alias like 'cus\\_%')
      and not exists (select from customers c where c.project_id = $1 and c.profile_id = o.id
        and c.external_id like 'cus\\_%' and c.external_id <> p.id)
  ), living as materialized (
    select c.* from ${each(
      'candidate c',
      'select anonymized_at from profiles t where t.project_id = $1 and t.id = c.into',
    )} where c.into <> c.id and (c.place < 5 or o.anonymized_at is null))
  select distinct on (l.id) l.id, l.into, l.place from living l order by l.id, l.place, l.into`

/** Makes each id stand for its profile; one that is a profile itself is merged. Returns those that were. */
async function takeAs(query: Query, projectId: string, pairs: Pair[]): Promise<Pair[]> {
  const merged: Pair[] = []
  for (const pair of pairs) {
    const [now] = await query(
      `select exists (select from profile_aliases where project_id = $1 and alias in ($2, $3)) as known,
         exists (select from profiles where project_id = $1 and id = $2) as stored`,
      [projectId, pair.from, pair.into],
    )
    // A concurrent merge took one of them: the next import sees it.
    if (now!.known === 't') continue
    if (now!.stored === 'f') await query(ADD_ALIAS, [projectId, pair.from, pair.into])
    else {
      await mergeIn(query, pair)
      merged.push(pair)
    }
  }
  return merged
}

const ADD_ALIAS =
  'insert into profile_aliases (project_id, alias, profile_id, created_at) values ($1, $2, $3, db_clock()) on conflict do nothing'

/** The ids that people without a profile name and that are not there yet. */
export async function waitingFor(
  query: Query,
  projectId: string,
  people: Person[],
  found: Pair[],
): Promise<WaitingLink[]> {
  const known = new Set(found.map(({ from }) => from))
  const links = people.flatMap(({ id, names: { profile, session } }): WaitingLink[] => {
    if (known.has(id) || profile === id) return []
    if (profile !== undefined) return [{ record: 'profile', id, field: 'profile_id', named: profile }]
    return session === undefined ? [] : [{ record: 'profile', id, field: 'session_id', named: session }]
  })
  const aliases = await query('select alias from profile_aliases where project_id = $1 and alias = any($2)', [
    projectId,
    links.map(({ id }) => id),
  ])
  const taken = new Set(aliases.map(({ alias }) => alias))
  return links.filter(({ id }) => !taken.has(id))
}

/** The links that these records, as far as they are stored, do not have. */
export async function unlinked(query: Query, projectId: string, links: WaitingLink[]): Promise<WaitingLink[]> {
  if (links.length === 0) return []
  const rows = await query<{ place: string }>(UNLINKED, [
    projectId,
    links.map(({ record }) => record),
    links.map(({ id }) => id),
    links.map(({ field }) => field),
  ])
  return rows.map(({ place }) => links[Number(place) - 1]!)
}

const IS_NULL = (row: string) => `case l.field when 'session_id' then ${row}.session_id is null
  when 'funnel_id' then ${row}.funnel_id is null else ${row}.experiment_id is null end`
const UNLINKED = `
  select l.place from unnest($2::text[], $3::text[], $4::text[]) with ordinality l (record, id, field, place)
  where exists (select from subscriptions u where l.record = 'subscription' and u.project_id = $1 and u.id = l.id and ${IS_NULL('u')})
    or exists (select from transactions t where l.record = 'transaction' and t.project_id = $1 and t.id = l.id and ${IS_NULL('t')})`
