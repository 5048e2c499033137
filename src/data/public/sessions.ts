// Sessions: the list, one session with its replies, and the replies with their screens.
import type { FastifyInstance } from 'fastify'
import { equals, listOf } from '../../core/lists/list.ts'
import type { Reads } from '../../core/lists/source.ts'
import { reply, replyDetail } from '../../core/records/reply.ts'
import { session, sessionRecord } from '../../core/records/session.ts'
import { sendJson } from '../../lib/http/send-json.ts'
import type { Row } from '../../lib/pg/row-bytes.ts'
import type { Statement } from '../../lib/pg/types.ts'
import { Type } from '../../lib/shape/schema.ts'
import type { PublicContext } from './context.ts'
import { detailSchema, findRows, findStatement, listRoute, notFound } from './resource.ts'

const list = listOf(sessionRecord, {
  shape: session,
  alias: 's',
  maxLimit: 500,
  filters: {
    profile_id: equals('s.profile_id', 'Only sessions of this profile.', { selective: true }),
    funnel_id: equals('s.funnel_id', 'Only sessions of this funnel.', { counter: 'funnel_id' }),
  },
})

const FIND = findStatement(list, 'session')

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
    replies: { type: 'array', items: reply.schema, description: 'Form replies, in the order of the screens.' },
  },
  required: [...(session.schema as { required: string[] }).required, 'replies'],
}

export function sessions(app: FastifyInstance, { reads }: PublicContext): void {
  listRoute(app, reads, '/sessions', list, {
    operationId: 'listSessions',
    tag: 'Sessions',
    summary: 'List sessions',
    description: 'Newest first, without replies. With an `updated_at` filter: oldest change first, for a sync.',
  })
  sessionRoute(app, reads)
  repliesRoute(app, reads)
}

function sessionRoute(app: FastifyInstance, reads: Reads): void {
  const about = {
    operationId: 'getSession',
    tag: 'Sessions',
    summary: 'Get a session',
    description: 'The session with its replies.',
  }
  const schema = detailSchema(about, 'The session.', sessionSchema)
  app.get<{ Params: { id: string } }>('/sessions/:id', { schema }, async ({ projectId, params: { id } }, response) => {
    const [row, replies] = await readSession(reads, FIND_REPLIES, projectId, id)
    // The session's own object stays open for one field more.
    const opened = session.write(row).toString().slice(0, -1)
    return sendJson(response, reply.writeList(replies, `${opened},"replies":[`, ']}'))
  })
}

function repliesRoute(app: FastifyInstance, reads: Reads): void {
  const about = {
    operationId: 'listSessionReplies',
    tag: 'Sessions',
    summary: "List a session's form replies",
    description: 'In the order of the screens; an empty list if the session has no replies.',
  }
  const schema = detailSchema(about, 'The replies.', Type.Array(replyDetail.schema))
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
