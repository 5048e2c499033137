// Keeps erased persons erased: removes personal data from staged rows about them, and from stored rows linked to them.
import { wipeAgain, wipeBelongings } from '../../core/erasure/erasure.ts'
import { customerRecord } from '../../core/records/customer.ts'
import { profileRecord } from '../../core/records/profile.ts'
import { erasedColumns, type Kind, type Tenant } from '../../core/records/record.ts'
import { replyRecord } from '../../core/records/reply.ts'
import { sessionRecord } from '../../core/records/session.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Query } from '../../lib/pg/types.ts'
import { CONCERNED, ERASED, ERASED_CUSTOMERS, ERASED_SESSIONS } from './helper-tables.ts'

/** A stored customer that a line links to an erased profile. */
export type Linked = { external_id: string; profile_id: string }

/**
 * Locks the profiles of the staged rows, finds those that are erased, then wipes and marks their rows. Until the commit
 * erasures wait, and then find the written rows. Returns whether a profile is erased, and which customers are linked to
 * erased profiles.
 */
export async function wipeErased(
  query: Query,
  kinds: readonly Kind[],
  tenant: Tenant,
  isLarge: boolean,
): Promise<{ isAnyErased: boolean; linked: Linked[] }> {
  const names = new Set(kinds.map(({ name }) => name))
  const concerned = [...names].flatMap((name) => PROFILES_OF[name]?.(tenant) ?? [])
  // For a few rows the other steps take no longer than the question.
  if (concerned.length === 0 || (isLarge && !(await canBeErased(query, names, tenant)))) return NO_ONE_ERASED
  // Sent together: a statement sees what was committed while the one before waited for its locks.
  const [, , , , [found]] = await Promise.all([
    query(`insert into ${CONCERNED} (id) ${concerned.join(' union ')}`),
    isLarge ? query(`analyze ${CONCERNED}`) : undefined,
    query(lockProfiles(tenant)),
    query(gatherErased(names, tenant)),
    query(`select exists (select from ${ERASED}) as erased`),
  ])
  if (found!.erased === 'f') return NO_ONE_ERASED
  for (const statement of effects(names, tenant)) await query(statement)
  return { isAnyErased: true, linked: names.has('customer') ? await query<Linked>(findLinked(tenant)) : [] }
}

const NO_ONE_ERASED = { isAnyErased: false, linked: [] }

// The most ids in memory, and in one statement, at once. See `src/core/events/changes.ts` for the size of results.
const BATCH = 2000

/**
 * Wipes what is stored of erased profiles: a session that was moved to one of them has replies, and a customer has orders
 * and events that no line contains. Call it when all sessions and customers are in their tables.
 */
export async function wipeStored(query: Query, projectId: string, base: string): Promise<void> {
  for (let last = ''; ; ) {
    const rows = await query<{ id: string }>(NEXT, [last, BATCH])
    if (rows.length === 0) return
    const ids = rows.map(({ id }) => id)
    await wipeBelongings(query, projectId, ids, base)
    last = ids.at(-1)!
  }
}

const NEXT = `select id from ${ERASED} where id > $1 order by id limit $2`

/**
 * Call it after the commit: a concurrent charge may have seen the old link, and written after the wipe. Each customer's
 * charges in progress are waited for while no other customer is locked, so that there is no deadlock.
 */
export async function wipeLinked(
  db: Db,
  query: Query,
  tenant: { projectId: string; organizationId: string },
  linked: Linked[],
): Promise<void> {
  for (const { external_id } of linked) await query(AWAIT_CHARGES, [tenant.organizationId, external_id])
  const ids = [...new Set(linked.map(({ profile_id }) => profile_id))]
  for (let at = 0; at < ids.length; at += BATCH) await wipeAgain(db, tenant.projectId, ids.slice(at, at + BATCH))
}

// A transaction that writes a caller's text about a customer holds a key share lock on the customer.
const AWAIT_CHARGES = 'select from customers where organization_id = $1 and external_id = $2 for update'

/** Whether any profile can be erased; the first import of a project skips the other steps. */
async function canBeErased(query: Query, names: Set<string>, { project_id }: Tenant): Promise<boolean> {
  const brought = names.has('profile') ? 'or exists (select from import_profile where anonymized_at is not null)' : ''
  const [found] = await query(`
    select exists (select from profiles where project_id = ${project_id})
      or exists (select from erasures where project_id = ${project_id}) ${brought} as possible`)
  return found!.possible === 't'
}

/** The profiles of staged rows, and those of the stored rows that will be replaced. */
const PROFILES_OF: Record<string, (tenant: Tenant) => string[]> = {
  profile: () => ['select id from import_profile'],
  session: ({ project_id }) => [
    'select profile_id from import_session',
    `select t.profile_id from import_session s join sessions t on t.project_id = ${project_id} and t.id = s.id`,
  ],
  reply: ({ project_id }) => [
    `select t.profile_id from import_reply s join sessions t on t.project_id = ${project_id} and t.id = s.session_id`,
  ],
  // Subscriptions contain no personal data. But an erasure stamps them, and a row that refers to a profile waits for the erasure of
  // that profile: unless all profiles are locked at once and in order, the two could deadlock. Also an event of a subscription
  // contains the user agent of its session, which may be of another profile.
  subscription: ({ project_id }) => [
    'select profile_id from import_subscription',
    `select t.profile_id from import_subscription s join sessions t on t.project_id = ${project_id} and t.id = s.session_id`,
  ],
  transaction: () => ['select profile_id from import_transaction'],
  customer: ({ organization_id }) => [
    'select profile_id from import_customer where profile_id is not null',
    `select t.profile_id from import_customer s join customers t
     on t.organization_id = ${organization_id} and t.external_id = s.external_id where t.profile_id is not null`,
  ],
}

function findLinked({ organization_id }: Tenant): string {
  return `
    select distinct s.external_id, s.profile_id from import_customer s
    join customers t on t.organization_id = ${organization_id} and t.external_id = s.external_id
    where s.erased and t.profile_id is distinct from s.profile_id`
}

function lockProfiles({ project_id }: Tenant): string {
  return `
    with locked as materialized (
      select from profiles p join ${CONCERNED} c on c.id = p.id where p.project_id = ${project_id}
      order by p.id for no key update of p)
    select count(*) from locked`
}

/** The profiles that are erased here, are in the ledger of a restored database, or are erased in their line. */
function gatherErased(names: Set<string>, { project_id }: Tenant): string {
  const brought = names.has('profile')
    ? 'union all select id, anonymized_at from import_profile where anonymized_at is not null'
    : ''
  return `
    insert into ${ERASED} (id, erased_at)
    select distinct on (id) id, erased_at from (
      select c.id, p.anonymized_at as erased_at from ${CONCERNED} c
        join profiles p on p.project_id = ${project_id} and p.id = c.id where p.anonymized_at is not null
      union all select c.id, e.erased_at from ${CONCERNED} c
        join erasures e on e.project_id = ${project_id} and e.profile_id = c.id
      ${brought}) known
    order by id, erased_at`
}

/**
 * The effects of an erasure. A record of an erased profile cannot move to another, or its personal data could return later.
 */
function effects(names: Set<string>, { project_id, organization_id }: Tenant): string[] {
  const has = (name: string, statements: string[]) => (names.has(name) ? statements : [])
  const sessions = `
    insert into ${ERASED_SESSIONS} (id, profile_id)
    select distinct on (id) id, profile_id from (
      select t.id, t.profile_id, 1 as place from ${ERASED} e
        join sessions t on t.project_id = ${project_id} and t.profile_id = e.id
      ${names.has('session') ? `union all select s.id, s.profile_id, 2 from ${ERASED} e join import_session s on s.profile_id = e.id` : ''}
    ) owned order by id, place, profile_id`
  return [
    ...has('profile', [
      `update import_profile s set ${erasedColumns(profileRecord, 's')}, anonymized_at = e.erased_at, erased = true
       from ${ERASED} e where e.id = s.id`,
    ]),
    ...(names.has('session') || names.has('reply') ? [sessions] : []),
    ...has('session', [
      `update import_session s set ${sessionRecord.lasting!.map((name) => `${name} = coalesce(s.${name}, t.${name})`).join(', ')}
       from sessions t, ${ERASED_SESSIONS} e where t.project_id = ${project_id} and t.id = s.id and e.id = s.id`,
      `update import_session s set profile_id = e.profile_id, ${erasedColumns(sessionRecord, 's')}, erased = true
       from ${ERASED_SESSIONS} e where e.id = s.id`,
    ]),
    ...has('reply', [
      `update import_reply s set ${erasedColumns(replyRecord, 's')}, erased = true from ${ERASED_SESSIONS} e where e.id = s.session_id`,
    ]),
    ...has('customer', [
      `insert into ${ERASED_CUSTOMERS} (external_id, profile_id)
       select distinct on (external_id) external_id, profile_id from (
         select t.external_id, t.profile_id, 1 as place from ${ERASED} e
           join customers t on t.project_id = ${project_id} and t.profile_id = e.id
           where t.organization_id = ${organization_id}
         union all select s.external_id, s.profile_id, 2 from ${ERASED} e join import_customer s on s.profile_id = e.id
       ) owned order by external_id, place, profile_id`,
      `update import_customer s set profile_id = e.profile_id, ${erasedColumns(customerRecord, 's')}, erased = true
       from ${ERASED_CUSTOMERS} e where e.external_id = s.external_id`,
    ]),
  ]
}
