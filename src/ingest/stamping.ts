// Stamps records that contain fields of other records when an import changes those, so that a sync sees the change.
import type { Query } from '../lib/pg/types.ts'
import type { Kind, Scope } from '../records/record.ts'
import { isChanged, type MergeHooks, sameKey } from './merge.ts'
import { staged } from './staging.ts'

const RENAMED = 'import_renamed'
const STRIPPED = 'import_stripped'
const ANSWERED = 'import_answered'

/** Creates the temporary tables for the ids of changed records; they are dropped at the end of the transaction. */
export async function beginStamps(query: Query): Promise<void> {
  for (const notes of [RENAMED, STRIPPED, ANSWERED])
    await query(`create temp table ${notes} (id text collate "C") on commit drop`)
}

/** Hooks of the merge of a kind that note which rows change. */
export function stampHooks(query: Query, kind: Kind, scope: Scope): MergeHooks {
  if (kind.name === 'profile') return { beforeUpdate: () => query(noteRenamed(kind, scope)) }
  if (kind.name === 'session') return { beforeUpdate: () => query(noteStripped(kind, scope)) }
  // Only in a feed: records of history keep the times of their lines, and syncs are not promised to see them.
  if (kind.name !== 'reply' || !scope.live) return {}
  return {
    beforeUpdate: () => query(noteAnswered(kind, scope)),
    beforeAdd: () => query(`insert into ${ANSWERED} (id) select distinct session_id from ${staged(kind)}`),
  }
}

/** Call it when all rows are written with their own stamps. */
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

/** Sessions that move to an erased profile and lose their user agent, which subscriptions of any profile may show. */
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

/** Stamps sessions whose replies change; a session with this stamp or a later one is read again by syncs anyway. */
function stampSessions({ project_id, stamp }: Scope): string {
  return `
    update sessions t set updated_at = ${stamp}
    where t.project_id = ${project_id} and t.id in (select id from ${ANSWERED}) and t.updated_at < ${stamp}`
}
