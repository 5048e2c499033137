// Writes events in the transaction that changes their objects: both are committed, or neither.
import { makeUuid } from '../../lib/ids.ts'
import type { Query, Statement } from '../../lib/pg/types.ts'
import type { ImpersonalType, PersonalType } from './catalogue.ts'

/** A value as the text of its JSON. */
export class JsonText {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export type Event = {
  /** The object it is about; the events of an object are numbered. */
  object_id: string
  /** The object as the API returns it; the text of JSON goes in as it is, down to the digits of its numbers. */
  data: object | JsonText
} & (
  | { type: ImpersonalType; profile_id: null }
  /** `profile_id`: the person whose data `data` may hold, so that an erasure finds the event; null: it is not known. */
  | { type: PersonalType; profile_id: string | null }
)

/**
 * Writes events of a project. The caller has locked their objects in an earlier statement, or has just created them:
 * `sequence` is right only if no concurrent transaction writes events of the same object.
 */
export async function write(query: Query, projectId: string, events: Event[]): Promise<void> {
  await send(
    query,
    WRITE,
    events.map((event) => ({ project_id: projectId, ...event })),
  )
}

/** Like `write`, for several projects. */
export async function writeAll(query: Query, events: OfProject[]): Promise<void> {
  await send(query, WRITE, events)
}

/** Like `write`, for objects of any projects that had no event before; one event for each object. */
export async function writeFirst(query: Query, events: OfProject[]): Promise<void> {
  await send(query, WRITE_FIRST, events)
}

export type OfProject = Event & { project_id: string }

async function send(query: Query, statement: Statement, events: OfProject[]): Promise<void> {
  await query(statement, [`[${events.map(asJson).join(',')}]`])
}

function asJson({ data, ...event }: OfProject): string {
  const head = JSON.stringify({ id: makeUuid(), ...event })
  return `${head.slice(0, -1)},"data":${data instanceof JsonText ? data.text : JSON.stringify(data)}}`
}

// Events of a project without endpoints need no fan-out.
const writing = (sequence: string) => `
    insert into events (project_id, id, type, object_id, sequence, created_at, profile_id, data, pending)
    select e.project_id, e.id, e.type, e.object_id, ${sequence}, db_clock(), e.profile_id, e.data,
      (select true from webhook_endpoints w where w.project_id = e.project_id and w.removed_at is null limit 1) is not null
    from rows from (json_to_recordset($1::json)
      as (project_id text, id uuid, type text, object_id text, profile_id text, data json)) with ordinality
      as e (project_id, id, type, object_id, profile_id, data, place)`

const WRITE: Statement = {
  name: 'write events',
  text: writing(`(select coalesce(max(sequence), 0) from events o where o.project_id = e.project_id and o.object_id = e.object_id)
        + row_number() over (partition by e.project_id, e.object_id order by e.place)`),
}

const WRITE_FIRST: Statement = { name: 'write first events', text: writing('1') }
