// Stamps records that contain fields of other records when an import changes those, so that a sync sees the change.

import type { Kind, Scope } from '../../core/records/record.ts'
import type { Query } from '../../lib/pg/types.ts'
import { isChanged, sameKey } from './conditions.ts'
import { ANSWERED_SESSIONS, CHANGED_CUSTOMERS, CHANGED_PROFILES, STRIPPED_SESSIONS } from './helper-tables.ts'
import type { MergeHooks } from './merge.ts'
import { staged } from './staging.ts'

/** Statements of the merge of a kind that note which rows change. */
export function stampHooks(kind: Kind, scope: Scope): MergeHooks {
  if (kind.name === 'profile') return { beforeUpdate: [noteChangedProfiles(kind, scope)] }
  if (kind.name === 'customer') return { beforeUpdate: [noteChangedCustomers(kind, scope)] }
  if (kind.name === 'session') return { beforeUpdate: [noteStrippedSessions(kind, scope)] }
  // Only in a feed: records of history keep the times of their lines, and syncs are not promised to see them.
  if (kind.name !== 'reply' || !scope.live) return {}
  return {
    beforeUpdate: [noteAnsweredSessions(kind, scope)],
    beforeAdd: [`insert into ${ANSWERED_SESSIONS} (id) select distinct session_id from ${staged(kind)}`],
  }
}

/** Stamps the records that contain fields of changed records of these kinds. Call it when all rows are written. */
export async function stampDependents(query: Query, kinds: readonly Kind[], scope: Scope): Promise<void> {
  const names = new Set(kinds.map(({ name }) => name))
  await Promise.all([
    ...(names.has('profile') ? [query(stampSubscriptions(scope, 'profile_id', CHANGED_PROFILES))] : []),
    ...(names.has('session') ? [query(stampSubscriptions(scope, 'session_id', STRIPPED_SESSIONS))] : []),
    ...(names.has('reply') ? [query(stampSessions(scope))] : []),
    ...(names.has('customer') ? stampCredits(scope).map((statement) => query(statement)) : []),
  ])
}

/** Profiles whose e-mail or preview mark, which their subscriptions contain, is going to change. */
function noteChangedProfiles(kind: Kind, scope: Scope): string {
  return `
    insert into ${CHANGED_PROFILES} (id)
    select t.id from profiles t join ${staged(kind)} s on ${sameKey(kind, scope)}
    where (t.email, t.preview) is distinct from (s.email, s.preview)`
}

/** Customers who become another profile's, which entries of their credits contain. */
function noteChangedCustomers(kind: Kind, scope: Scope): string {
  return `
    insert into ${CHANGED_CUSTOMERS} (external_id)
    select t.external_id from customers t join ${staged(kind)} s on ${sameKey(kind, scope)}
    where t.profile_id is distinct from s.profile_id`
}

function stampCredits({ organization_id, stamp }: Scope): string[] {
  return [
    `select await_credit_entries(${organization_id}) from ${CHANGED_CUSTOMERS} limit 1`,
    `update credit_entries t set updated_at = greatest(${stamp}, t.updated_at + interval '1 microsecond')
     from ${CHANGED_CUSTOMERS} n where t.organization_id = ${organization_id} and t.external_id = n.external_id`,
  ]
}

/** Sessions that move to an erased profile and lose their user agent, which subscriptions of any profile may contain. */
function noteStrippedSessions(kind: Kind, scope: Scope): string {
  return `
    insert into ${STRIPPED_SESSIONS} (id)
    select t.id from sessions t join ${staged(kind)} s on ${sameKey(kind, scope)}
    where s.erased and t.user_agent is not null`
}

function stampSubscriptions({ project_id, stamp }: Scope, reference: string, notes: string): string {
  return `
    update subscriptions t set updated_at = greatest(${stamp}, t.updated_at + interval '1 microsecond')
    from ${notes} n where t.project_id = ${project_id} and t.${reference} = n.id`
}

/** Sessions with a reply that is going to change. */
function noteAnsweredSessions(kind: Kind, scope: Scope): string {
  return `
    insert into ${ANSWERED_SESSIONS} (id)
    select distinct t.session_id from ${kind.table} t join ${staged(kind)} s on ${sameKey(kind, scope)}
    where ${isChanged(kind)}`
}

/** Stamps sessions whose replies change; a session with this stamp or a later one is read again by syncs anyway. */
function stampSessions({ project_id, stamp }: Scope): string {
  return `
    update sessions t set updated_at = ${stamp}
    where t.project_id = ${project_id} and t.id in (select id from ${ANSWERED_SESSIONS}) and t.updated_at < ${stamp}`
}
