// Sessions: the list, one session with its replies, and the replies with their screens.
import type { FastifyInstance } from 'fastify'
import { sendJson } from '../lib/http/listener.ts'
import { problems } from '../lib/http/problems.ts'
import type { Row } from '../lib/pg/row-bytes.ts'
import type { Statement } from '../lib/pg/types.ts'
import { Type } from '../lib/shape/schema.ts'
import { type Fields, instant, integer, json, object, shape, text } from '../lib/shape/shape.ts'
import type { List } from '../lists/list.ts'
import type { Reads } from '../lists/source.ts'
import type { PublicContext } from './context.ts'
import { answer, describe, findRows, idParams, listRoute, notFound } from './resource.ts'

const value = {
  nullable: true,
  schema: { type: ['string', 'array', 'null'], items: { type: 'string' } },
  description: 'A text, a list of texts (multi-select), or null when empty or erased.',
}

const item: Fields = {
  id: text('Identifier.', { example: 'ses_01JZ8Q6V9M3T0R5K7W2X4Y6Z8A' }),
  created_at: instant('When it began.'),
  updated_at: instant('When it was last changed.'),
  profile_id: text('Whose it is.'),
  funnel_id: text('Funnel it went through.', { nullable: true }),
  funnel_version: integer('Version of the funnel.', { nullable: true }),
  experiment_id: text('Experiment it took part in.', { nullable: true }),
  locale: text('Language.', { nullable: true, example: 'en' }),
  origin: text('Address it came to; after an erasure scheme and host only.', { nullable: true }),
  user_agent: text('Browser; null when unknown or erased.', { nullable: true }),
  query_params: json('Parameters of the address it came to; empty after an erasure.', {
    schema: { type: 'object', additionalProperties: true },
  }),
  attributes: object('Where it came from.', {
    ip: text('IP address; null when unknown or erased.', { nullable: true, example: '192.0.2.1' }),
    country: text('Country, ISO 3166-1 alpha-2.', { nullable: true, example: 'DE' }),
    region_code: text('Region.', { nullable: true }),
    city: text('City.', { nullable: true }),
    postal_code: text('Postal code; null when unknown or erased.', { nullable: true }),
    timezone: text('Time zone, IANA name.', { nullable: true, example: 'Europe/Berlin' }),
    locale_code: text('Language and region of the browser.', { nullable: true, example: 'de-DE' }),
  }),
  tracking_cookies: json('Cookies of advertising networks; empty after an erasure.', {
    schema: { type: 'object', additionalProperties: true },
  }),
}

const session = shape('Session', 's', item)

const reply = shape('Reply', 'r', {
  element_id: text('Element of the form.'),
  screen_id: text('Screen it stands on.'),
  value: json(value.description, value),
})

const replyDetail = shape('ReplyDetail', 'r', {
  element: object('Element of the form.', {
    id: text('Identifier.', { sql: 'r.element_id' }),
    type: text('Kind of element.', { sql: 'r.element_type', example: 'Input' }),
    custom_id: text('Name the team gave it.', { sql: 'r.element_custom_id', nullable: true }),
  }),
  screen: object('Screen it stands on.', {
    id: text('Identifier.', { sql: 'r.screen_id' }),
    index: integer('Place in the funnel, from 0.', { sql: 'r.screen_index', example: 0 }),
    custom_id: text('Name the team gave it.', { sql: 'r.screen_custom_id', nullable: true }),
  }),
  state: object('What was answered.', { value: json(value.description, { ...value, sql: 'r.value' }) }),
})

const list: List = {
  name: 'sessions',
  shape: session,
  table: 'sessions',
  alias: 's',
  joins: '',
  maxLimit: 500,
  sync: true,
  filters: {
    profile_id: {
      schema: Type.String({ description: 'Those of this profile.' }),
      where: (id) => `s.profile_id = ${id}`,
      selective: true,
    },
    funnel_id: {
      schema: Type.String({ description: 'Those through this funnel.' }),
      where: (id) => `s.funnel_id = ${id}`,
      counter: 'funnel_id',
    },
  },
}

const FIND = {
  name: 'find session',
  text: `select ${session.columns} from sessions s where s.project_id = $1 and s.id = $2`,
}

const findReplies = (name: string, columns: string) => ({
  name,
  text: `
    select ${columns} from replies r where r.project_id = $1 and r.session_id = $2
    order by r.screen_index, r.screen_id, r.element_id`,
})
const FIND_REPLIES = findReplies('find replies', reply.columns)
const FIND_REPLY_DETAILS = findReplies('find reply details', replyDetail.columns)

const sessionSchema = {
  ...(session.schema as { properties: object; required: string[] }),
  title: 'SessionDetail',
  properties: {
    ...(session.schema as { properties: object }).properties,
    replies: { type: 'array', items: reply.schema, description: 'Form replies in screen order.' },
  },
  required: [...(session.schema as { required: string[] }).required, 'replies'],
}

export function sessions(app: FastifyInstance, { reads }: PublicContext): void {
  listRoute(app, reads, '/sessions', list, {
    operationId: 'listSessions',
    tag: 'Sessions',
    summary: 'List sessions',
    description: 'Newest first, without replies; with an `updated_at` filter oldest change first, for a sync.',
  })
  sessionRoute(app, reads)
  repliesRoute(app, reads)
}

function sessionRoute(app: FastifyInstance, reads: Reads): void {
  const schema = {
    ...describe({
      operationId: 'getSession',
      tag: 'Sessions',
      summary: 'Get a session',
      description: 'The session with its replies.',
    }),
    params: idParams('session'),
    querystring: Type.Object({}),
    response: { 200: answer('The session.', sessionSchema), ...problems(400, 401, 404) },
  }
  app.get<{ Params: { id: string } }>('/sessions/:id', { schema }, async ({ projectId, params: { id } }, response) => {
    const [row, replies] = await readSession(reads, FIND_REPLIES, projectId, id)
    // The session's own object stays open for one field more.
    const opened = session.write(row).toString().slice(0, -1)
    return sendJson(response, reply.writeList(replies, `${opened},"replies":[`, ']}'))
  })
}

function repliesRoute(app: FastifyInstance, reads: Reads): void {
  const schema = {
    ...describe({
      operationId: 'listSessionReplies',
      tag: 'Sessions',
      summary: "List a session's form replies",
      description: 'In screen order; an empty list for a session without replies.',
    }),
    params: idParams('session'),
    querystring: Type.Object({}),
    response: { 200: answer('The replies.', Type.Array(replyDetail.schema)), ...problems(400, 401, 404) },
  }
  app.get<{ Params: { id: string } }>(
    '/sessions/:id/replies',
    { schema },
    async ({ projectId, params: { id } }, response) => {
      const [, replies] = await readSession(reads, FIND_REPLY_DETAILS, projectId, id)
      return sendJson(response, replyDetail.writeList(replies, '[', ']'))
    },
  )
}

/** The session's row and those of its replies, both from one server. */
function readSession(reads: Reads, findReplies: Statement, projectId: string, id: string): Promise<[Row, Row[]]> {
  return reads.run(projectId, async (source) => {
    const [[row], replies] = await Promise.all([
      findRows(source, FIND, projectId, id),
      findRows(source, findReplies, projectId, id),
    ])
    if (!row) throw notFound('session', id)
    return [row, replies]
  })
}
