// Events of a project, their deliveries and attempts, and sending an event again.
import { eventTypes } from '../../core/events/catalogue.ts'
import { sendAgain } from '../../core/events/endpoints.ts'
import { isUuid } from '../../lib/ids.ts'
import { type Schema, Type } from '../../lib/shape/schema.ts'
import { boolean, instant, integer, json, shape, text } from '../../lib/shape/shape.ts'
import { notFound } from './exist.ts'
import { equals, type Filter, list, ofProject } from './list.ts'
import { change, reading } from './operation.ts'

const TAG = 'Events'
const PATH = '/projects/:project_id/events'

const event = shape('Event', 'v', {
  id: text('Identifier; the `webhook-id` of its deliveries.', { example: '0199f0a6-52f0-7d51-8f0f-6f3d1c1b6a55' }),
  type: text('Kind.', { enum: eventTypes }),
  object_id: text('The object it is about.'),
  sequence: integer('Number of the event among those of the same object: 1, 2, 3, ….', { example: 1 }),
  created_at: instant('When it was written.'),
  pending: boolean('Whether its deliveries have yet to be created.'),
  data: json('The object as the API returned it; after an erasure, only its id.', {
    schema: { type: 'object', additionalProperties: true } as Schema<Record<string, unknown>>,
  }),
})

const delivery = shape('Delivery', 'd', {
  project_id: text('Project.'),
  event_id: text('Event.'),
  event_type: text('Kind of the event.', { sql: 'v.type', enum: eventTypes }),
  endpoint_id: text('Endpoint.'),
  url: text('URL to which it is posted; of one that is finished, the URL of its last attempt.', {
    sql: `coalesce(case when d.status <> 'pending' then (select a.url from webhook_attempts a
      where a.project_id = d.project_id and a.event_id = d.event_id and a.endpoint_id = d.endpoint_id
        and a.number = d.attempts) end, e.url)`,
  }),
  endpoint_enabled: boolean('Whether the endpoint is enabled; otherwise the delivery waits.', { sql: 'e.enabled' }),
  status: text('`failed` when the schedule of attempts has ended.', { enum: ['pending', 'succeeded', 'failed'] }),
  attempts: integer('Number of attempts begun.'),
  failures: integer(
    'Number of attempts that failed since the schedule began: the event was last sent, or the endpoint enabled or its URL changed.',
  ),
  created_at: instant('When the delivery was created.'),
  next_attempt_at: instant('When the next attempt is due; during an attempt, when another process may take over.', {
    nullable: true,
  }),
  finished_at: instant('When it succeeded or was given up.', { nullable: true }),
})

const attempt = shape('Attempt', 'a', {
  endpoint_id: text('Endpoint.'),
  url: text('URL to which it was posted.', { sql: 'coalesce(a.url, e.url)' }),
  number: integer('Number of the attempt, from 1.'),
  attempted_at: instant('When it began.'),
  duration_ms: integer('How long it took, in milliseconds.'),
  status: integer('HTTP status of the response.', { nullable: true }),
  error: text('Why there was no response.', { nullable: true }),
  answer: text('The first 2 KiB of the response body; null if there was none, or after an erasure.', {
    nullable: true,
  }),
})

/** SQL: a text as a UUID, which an index finds; null if it is none. */
const asUuid = (text: string) =>
  `case when ${text}::text ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then ${text}::text::uuid end`

function equalsId(column: string, description: string): Filter {
  const filter = equals(column, description)
  return { ...filter, where: (value) => `${column} = ${asUuid(value)}` }
}

const DELIVERIES = `webhook_deliveries d
  join webhook_endpoints e on e.project_id = d.project_id and e.id = d.endpoint_id and e.removed_at is null
  join events v on v.project_id = d.project_id and v.id = d.event_id`

const FIND = {
  name: 'find event',
  text: `select ${event.columns} from events v where v.project_id = $1 and v.id = $2::uuid`,
}

const get = reading({
  id: 'getEvent',
  right: 'people',
  command: 'event show',
  path: `${PATH}/:event_id`,
  tag: TAG,
  summary: 'Get an event',
  response: event.schema,
  async run({ db }, { params }) {
    const { project_id, event_id } = params
    const [row] = isUuid(event_id) ? await db.read(FIND, [project_id, event_id.toLowerCase()]) : []
    if (!row) throw notFound('event', event_id)
    return event.one(row)
  },
})

const send = change({
  id: 'sendEventAgain',
  right: 'send',
  command: 'event send',
  method: 'POST',
  path: `${PATH}/:event_id/send`,
  tag: TAG,
  summary: 'Send an event again',
  description: 'With the same id and a new schedule: to one endpoint, or to all that receive its kind.',
  body: Type.Named('SendAgain', {
    endpoint_id: Type.Optional(
      Type.String({ description: 'The endpoint; by default all that receive the kind.', maxLength: 64 }),
    ),
  }),
  response: Type.Named('SentAgain', {
    endpoints: Type.Integer({ description: 'Number of endpoints to which it is sent.' }),
  }),
  async change(query, { params, body }) {
    const { project_id, event_id } = params
    if (!isUuid(event_id)) throw notFound('event', event_id)
    const { endpoint_id } = body
    const endpoints = await sendAgain(query, project_id, event_id.toLowerCase(), endpoint_id)
    const after = { endpoints, ...(endpoint_id !== undefined && { endpoint_id }) }
    return {
      entry: { action: 'event.sent_again', target: `event ${event_id} of project ${project_id}`, after },
      result: { endpoints },
    }
  },
})

export const events = [
  list({
    id: 'listEvents',
    right: 'people',
    command: 'event list',
    columns: ['id', 'type', 'object_id', 'sequence', 'created_at'],
    path: PATH,
    tag: TAG,
    summary: 'List events',
    shape: event,
    from: 'events v',
    at: 'v.created_at',
    key: 'v.id',
    isKey: isUuid,
    ...ofProject('v'),
    filters: {
      type: equals('v.type', 'Only events of this kind.', { enum: eventTypes }),
      object_id: equals('v.object_id', 'Only events about this object.'),
      profile_id: equals('v.profile_id', 'Only events about this person.'),
    },
  }),
  get,
  send,
  list({
    id: 'listAttempts',
    right: 'people',
    command: 'event attempts',
    columns: ['number', 'attempted_at', 'url', 'status', 'duration_ms', 'error', 'answer'],
    path: `${PATH}/:event_id/attempts`,
    tag: TAG,
    summary: 'List the attempts to deliver an event',
    description: 'They are kept for 30 days.',
    shape: attempt,
    from: `webhook_attempts a
      join webhook_endpoints e on e.project_id = a.project_id and e.id = a.endpoint_id and e.removed_at is null`,
    at: 'a.attempted_at',
    key: `a.endpoint_id || '/' || a.number`,
    where: `a.project_id = $1 and a.event_id = ${asUuid('$2')}`,
    params: ['project_id', 'event_id'],
  }),
  list({
    id: 'listDeliveries',
    right: 'people',
    command: 'delivery list',
    columns: ['event_id', 'event_type', 'url', 'status', 'failures', 'next_attempt_at'],
    path: '/projects/:project_id/deliveries',
    tag: TAG,
    summary: 'List deliveries',
    shape: delivery,
    from: DELIVERIES,
    at: 'd.created_at',
    key: 'md5(d.event_id || d.endpoint_id::text)',
    ...ofProject('d'),
    filters: {
      event_id: equalsId('d.event_id', 'Only deliveries of this event.'),
      endpoint_id: equalsId('d.endpoint_id', 'Only deliveries to this endpoint.'),
      status: equals('d.status', 'Only deliveries in this state.', { enum: ['pending', 'succeeded', 'failed'] }),
    },
  }),
  list({
    id: 'listFailingDeliveries',
    right: 'people',
    command: 'delivery failing',
    columns: ['project_id', 'event_id', 'event_type', 'url', 'status', 'failures', 'next_attempt_at'],
    path: '/deliveries/failing',
    tag: TAG,
    summary: 'List deliveries that keep failing',
    description: 'Deliveries of all projects that failed at least twice and have not succeeded since.',
    shape: delivery,
    from: DELIVERIES,
    at: 'd.created_at',
    key: 'md5(d.event_id || d.endpoint_id::text)',
    where: `d.failures >= 2 and d.status <> 'succeeded'`,
    reach: {
      organization: '(select p.organization_id from projects p where p.id = d.project_id)',
      project: 'd.project_id',
    },
  }),
] as const
