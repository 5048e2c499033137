// Writes the events that follow from changed records, a batch at a time.
import type { Query } from '../../lib/pg/types.ts'
import type { Shape } from '../../lib/shape/shape.ts'
import { profile } from '../records/profile.ts'
import { sessionReplies } from '../records/reply.ts'
import { session } from '../records/session.ts'
import { DETAIL_JOINS, subscriptionDetail } from '../records/subscription.ts'
import { JOINS, transaction } from '../records/transaction.ts'
import type { PersonalType } from './catalogue.ts'
import { type Event, JsonText, write } from './outbox.ts'

/** A record that was written in this transaction; a subscription with its former state; null: it is new. */
export interface Change {
  id: string
  before: { status: string; renewed_at: string | null; period_starts_at: string | null } | null
}

/** Kinds of events whose data is a record as it is stored now. */
const RECORD_EVENTS = [
  'profile.created',
  'profile.updated',
  'session.created',
  'session.completed',
  'transaction.created',
] as const satisfies PersonalType[]
export type RecordEvent = (typeof RECORD_EVENTS)[number]

/** What changes are events of, in their order. */
export const CHANGES = ['subscription', ...RECORD_EVENTS] as const
export type ChangeType = (typeof CHANGES)[number]

// The number of rows, each of an event's size, that are in memory and in one statement at once. A result larger than the buffers
// of a connection keeps PostgreSQL waiting for a frozen process without a limit, while the transaction holds its locks.
export const MOST_READ = 50

/**
 * Writes the events of these changes, in their order. A new subscription is `created`, followed by an event named after
 * its state if that is another one; a changed state has the event of its name; a new period in the same state is `renewed`.
 * Call it after the change, in the same transaction.
 */
export async function emitSubscriptionEvents(query: Query, projectId: string, changes: Change[]): Promise<void> {
  await emit(query, projectId, 'subscription', changes)
}

/** Writes an event of this type for each of these records. Call it after the change, in the same transaction. */
export async function emitRecordEvents(
  query: Query,
  projectId: string,
  type: RecordEvent,
  ids: string[],
): Promise<void> {
  const changes = ids.map((id) => ({ id, before: null }))
  await emit(query, projectId, type, changes)
}

async function emit(query: Query, projectId: string, type: ChangeType, changes: Change[]): Promise<void> {
  for (let at = 0; at < changes.length; at += MOST_READ) {
    const batch = changes.slice(at, at + MOST_READ)
    const ids = batch.map(({ id }) => id)
    await write(query, projectId, eventsOf(type, await readChanged(query, projectId, type, ids), batch))
  }
}

/** The events of changes whose records are read; of records that are gone there are none. */
export function eventsOf(type: ChangeType, records: ReadRecords, changes: Change[]): Event[] {
  return changes.flatMap(({ id, before }) => {
    const row = records.get(id)
    if (!row) return []
    return type === 'subscription' ? kinds(row, before).map((kind) => eventOf(kind, row)) : [eventOf(type, row)]
  })
}

/** By their ids. */
export type ReadRecords = Map<string, Read>

interface Read {
  id: string
  profile_id: string
  status: string | null
  renewed_at: string | null
  period_starts_at: string | null
  /** The object as the API returns it. */
  data: JsonText
}

function kinds(now: Read, before: Change['before']): PersonalType[] {
  const ofState = now.status === 'created' ? [] : [`subscription.${now.status}` as PersonalType]
  if (before === null) return ['subscription.created', ...ofState]
  if (before.status !== now.status) return now.status === 'created' ? ['subscription.created'] : ofState
  return isLater(now.renewed_at, before.renewed_at) || isLater(now.period_starts_at, before.period_starts_at)
    ? ['subscription.renewed']
    : []
}

// PostgreSQL drops trailing zeros of a fraction, so its texts sort by time only when padded.
const isLater = (now: string | null, before: string | null) =>
  now !== null && (before === null || padded(now) > padded(before))
const padded = (text: string) => text.replace(/(\.\d+)?\+00$/, (_all, fraction = '.') => fraction.padEnd(7, '0'))

const eventOf = (type: PersonalType, { id, profile_id, data }: Read): Event => ({
  type,
  object_id: id,
  profile_id,
  data,
})

interface Source {
  shape: Shape
  /** The columns of `Read` except the data. */
  head: string
  from: string
  id: string
}

const NO_STATE = 'null as status, null as renewed_at, null as period_starts_at'
const PROFILES: Source = {
  shape: profile,
  head: `p.id, p.id as profile_id, ${NO_STATE}`,
  from: 'profiles p where p.project_id = $1',
  id: 'p.id',
}
const ofSessions = (shape: Shape): Source => ({
  shape,
  head: `s.id, s.profile_id, ${NO_STATE}`,
  from: 'sessions s where s.project_id = $1',
  id: 's.id',
})

const SOURCES: Record<ChangeType, Source> = {
  subscription: {
    shape: subscriptionDetail,
    head: 's.id, s.profile_id, s.status, s.renewed_at, s.period_starts_at',
    from: `subscriptions s ${DETAIL_JOINS} where s.project_id = $1`,
    id: 's.id',
  },
  'profile.created': PROFILES,
  'profile.updated': PROFILES,
  'session.created': ofSessions(session),
  'session.completed': ofSessions(sessionReplies),
  'transaction.created': {
    shape: transaction,
    head: `t.id, t.profile_id, ${NO_STATE}`,
    from: `transactions t ${JOINS} where t.project_id = $1`,
    id: 't.id',
  },
}

/** The records of these ids, at most `MOST_READ`: a list, or SQL of an array. */
export async function readChanged(
  query: Query,
  projectId: string,
  type: ChangeType,
  ids: string[] | string,
): Promise<ReadRecords> {
  const { shape, head, from, id } = SOURCES[type]
  const isList = typeof ids !== 'string'
  const text = `select ${head}, ${shape.namedColumns} from ${from} and ${id} = any(${isList ? '$2' : ids})`
  const rows = await query<Omit<Read, 'data'>>(text, isList ? [projectId, ids] : [projectId])
  return new Map(
    rows.map((row) => {
      const { id, profile_id, status, renewed_at, period_starts_at } = row
      const data = new JsonText(shape.writeNamed(row).toString())
      return [id, { id, profile_id, status, renewed_at, period_starts_at, data }]
    }),
  )
}
