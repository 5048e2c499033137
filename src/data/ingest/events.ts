// Writes the events of an import's changes, if requested, in the transaction of the import.
import {
  CHANGES,
  type Change,
  type ChangeType,
  eventsOf,
  MOST_READ,
  type ReadRecords,
  readChanged,
} from '../../core/events/changes.ts'
import { type Event, write } from '../../core/events/outbox.ts'
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

/** Noted changes, and the first records of each type as they are now. */
export interface Changes {
  rows: Noted[]
  records: Map<ChangeType, ReadRecords>
}

export const NO_CHANGES: Changes = { rows: [], records: new Map() }

/** The first noted changes of these kinds. Its statements are sent before it returns; call it when all rows are written. */
export async function readNoted(query: Query, projectId: string, kinds: readonly Kind[]): Promise<Changes> {
  const types = kinds.flatMap(({ name }) => TYPES[name] ?? [])
  const [rows, records] = await Promise.all([
    readFrom(query, '0'),
    Promise.all(types.map(async (type) => [type, await readChanged(query, projectId, type, FIRST[type])] as const)),
  ])
  return { rows, records: new Map(records) }
}

const readFrom = (query: Query, place: string) => query<Noted>(NEXT, [place, BATCH])

const TYPES: Record<string, ChangeType[]> = {
  subscription: ['subscription'],
  profile: ['profile.created', 'profile.updated'],
  session: ['session.created'],
  reply: ['session.completed'],
  transaction: ['transaction.created'],
}

/** SQL: the ids of the first changes of each type. */
const FIRST = Object.fromEntries(
  CHANGES.map((type) => [
    type,
    `array(select id from ${NOTED} where kind = '${type}' order by place limit ${MOST_READ})`,
  ]),
) as Record<ChangeType, string>

/** Writes the events of all noted changes, of which the first are read. The statements that it returns are sent and not awaited. */
export async function emitNoted(query: Query, projectId: string, first: Changes): Promise<Promise<unknown>[]> {
  const known = new Map(first.records)
  let events: Event[] = []
  const send = () => {
    const sent = events
    events = []
    return sent.length > 0 ? write(query, projectId, sent) : undefined
  }
  for (let rows = first.rows; ; ) {
    for (const type of CHANGES) {
      const changes = rows.filter(({ kind }) => kind === type).map(changeOf)
      for (let at = 0; at < changes.length; at += MOST_READ) {
        const batch = changes.slice(at, at + MOST_READ)
        let records = known.get(type)
        known.delete(type)
        if (!records) {
          // PostgreSQL writes events while the next records are awaited.
          const ids = batch.map(({ id }) => id)
          ;[, records] = await Promise.all([send(), readChanged(query, projectId, type, ids)])
        }
        events.push(...eventsOf(type, records, batch))
      }
    }
    if (rows.length < BATCH) {
      const last = send()
      return last ? [last] : []
    }
    ;[, rows] = await Promise.all([send(), readFrom(query, rows.at(-1)!.place)])
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

function changeOf({ id, known, status, renewed_at, period_starts_at }: Noted): Change {
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
