// Stamps what shows a part of other records that an import changes, so that a sync sees it.
import type { Query } from '../lib/pg/types.ts'
import type { Kind, Scope } from '../records/record.ts'
import { isChanged, type MergeHooks, sameKey } from './merge.ts'
import { staged } from './staging.ts'

const RENAMED = 'import_renamed'
const STRIPPED = 'import_stripped'
const ANSWERED = 'import_answered'

/** Makes the notes of what changes; they end with the transaction. */
export async function beginStamps(query: Query): Promise<void> {
  for (const notes of [RENAMED, STRIPPED, ANSWERED])
    await query(`create temp table ${notes} (id text collate "C") on commit drop`)
}

/** What to do while rows of this kind are merged, so that it is known what shows them. */
export function stampHooks(query: Query, kind: Kind, scope: Scope): MergeHooks {
  if (kind.name === 'profile') return { beforeUpdate: () => query(noteRenamed(kind, scope)) }
  if (kind.name === 'session') return { beforeUpdate: () => query(noteStripped(kind, scope)) }
  // A feed: history is outside of what a sync is promised, and keeps the times it brings.
  if (kind.name !== 'reply' || !scope.live) return {}
  return {
    beforeUpdate: () => query(noteAnswered(kind, scope)),
    beforeAdd: () => query(`insert into ${ANSWERED} (id) select distinct session_id from ${staged(kind)}`),
  }
}

/** Comes when everything is there, and stamped by what it brings itself. */
export async function stampWhatShows(query: Query, scope: Scope): Promise<void> {
  await query(stampSubscriptions(scope, 'profile_id', RENAMED))
  await query(stampSubscriptions(scope, 'session_id', STRIPPED))
  await query(stampSessions(scope))
}

/** Profiles whose e-mail or preview mark, which their subscriptions show, is going to change. */
function noteRenamed(kind: Kind, scope: Scope): string {
  return `
    insert into ${RENAMED} (id)
    select t.id from profiles t join ${staged(kind)} s on ${sameKey(kind, scope)}
    where (t.email, t.preview) is distinct from (s.email, s.preview)`
}

/** Sessions that come under an erased profile and lose their user agent, which subscriptions of anybody may show. */
function noteStripped(kind: Kind, scope: Scope): string {
  return `
    insert into ${STRIPPED} (id)
    select t.id from sessions t join ${staged(kind)} s on ${sameKey(kind, scope)}
    where s.erased and t.user_agent is not null`
}

function stampSubscriptions({ project_id, stamp }: Scope, shows: string, notes: string): string {
  return `
    update subscriptions t set updated_at = greatest(${stamp}, t.updated_at + interval '1 microsecond')
    from ${notes} n where t.project_id = ${project_id} and t.${shows} = n.id`
}

/** Sessions with a reply that is going to change. */
function noteAnswered(kind: Kind, scope: Scope): string {
  return `
    insert into ${ANSWERED} (id)
    select distinct t.session_id from ${kind.table} t join ${staged(kind)} s on ${sameKey(kind, scope)}
    where ${isChanged(kind)}`
}

/** Those that are stamped by this import already, or later, come in a sync with their replies. */
function stampSessions({ project_id, stamp }: Scope): string {
  return `
    update sessions t set updated_at = ${stamp}
    where t.project_id = ${project_id} and t.id in (select id from ${ANSWERED}) and t.updated_at < ${stamp}`
}
