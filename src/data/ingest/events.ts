// Writes the events of an import's changes, if requested, in the transaction of the import.
import {
  emitRecordEvents,
  emitSubscriptionEvents,
  RECORD_EVENTS,
  type SubscriptionChange,
} from '../../core/events/changes.ts'
import type { Kind, Scope } from '../../core/records/record.ts'
import type { Query } from '../../lib/pg/types.ts'
import { isChanged, sameKey } from './conditions.ts'
import { NOTED } from './helper-tables.ts'
import type { MergeHooks } from './merge.ts'
import { staged } from './staging.ts'

// The most changes in memory at once. See `src/core/events/changes.ts` for the size of results.
const BATCH = 1000

/** Statements of the merge of a kind that note which records change. */
export function eventHooks(kind: Kind, scope: Scope): MergeHooks {
  if (kind.name === 'subscription') return { beforeUpdate: [noteKnown(kind, scope)], beforeAdd: [noteNew(kind)] }
  const added = `select id from ${staged(kind)} order by source, line`
  if (kind.name === 'transaction') return { beforeAdd: [note('transaction.created', added)] }
  if (kind.name === 'session') return { beforeAdd: [note('session.created', added)] }
  if (kind.name === 'reply') return { beforeAdd: [note('session.completed', firstReplies(kind, scope))] }
  if (kind.name !== 'profile') return {}
  const changed = `select t.id from ${kind.table} t join ${staged(kind)} s on ${sameKey(kind, scope)}
    where ${isChanged(kind)} order by s.source, s.line`
  return { beforeUpdate: [note('profile.updated', changed)], beforeAdd: [note('profile.created', added)] }
}

/** SQL: the sessions that get replies and had none. */
function firstReplies(kind: Kind, { project_id }: Scope): string {
  return `select distinct s.session_id from ${staged(kind)} s where not exists (
    select from ${kind.table} t where t.project_id = ${project_id} and t.session_id = s.session_id)`
}

/** The first noted changes. */
export const readNoted = (query: Query, place = '0') => query<Noted>(NEXT, [place, BATCH])

/** Writes the events of all noted changes, of which the first are read. Call it when all rows are written. */
export async function emitNoted(query: Query, projectId: string, first: Noted[]): Promise<void> {
  for (let rows = first; ; ) {
    const ofKind = (kind: string) => rows.filter((row) => row.kind === kind)
    await emitSubscriptionEvents(query, projectId, ofKind('subscription').map(changeOf))
    for (const type of RECORD_EVENTS)
      await emitRecordEvents(
        query,
        projectId,
        type,
        ofKind(type).map(({ id }) => id),
      )
    if (rows.length < BATCH) return
    rows = await readNoted(query, rows.at(-1)!.place)
  }
}

type Noted = {
  place: string
  kind: string
  id: string
  known: 't' | 'f'
  status: string
  renewed_at: string | null
  period_starts_at: string | null
}

const NEXT = `select * from ${NOTED} where place > $1 order by place limit $2`

function changeOf({ id, known, status, renewed_at, period_starts_at }: Noted): SubscriptionChange {
  return { id, before: known === 't' ? { status, renewed_at, period_starts_at } : null }
}

function noteKnown(kind: Kind, scope: Scope): string {
  return `
    insert into ${NOTED} (kind, id, known, status, renewed_at, period_starts_at)
    select '${kind.name}', t.id, true, t.status, t.renewed_at, t.period_starts_at
    from ${kind.table} t join ${staged(kind)} s on ${sameKey(kind, scope)} order by s.source, s.line`
}

function noteNew(kind: Kind): string {
  return `
    insert into ${NOTED} (kind, id, known) select '${kind.name}', id, false from ${staged(kind)} order by source, line`
}

function note(type: string, ids: string): string {
  return `insert into ${NOTED} (kind, id) select '${type}', id from (${ids}) changed (id)`
}
