// The form replies of all sessions: an item for each session, in the order and with the windows of sessions.
import type { FastifyInstance } from 'fastify'
import { equals, listOf } from '../../core/lists/list.ts'
import { sessionReplies } from '../../core/records/reply.ts'
import { sessionRecord } from '../../core/records/session.ts'
import type { PublicContext } from './context.ts'
import { listRoute } from './resource.ts'

// A session has a few dozen replies, so a page of this many items is already large.
const MAX_LIMIT = 100

const list = {
  ...listOf(sessionRecord, {
    shape: sessionReplies,
    alias: 's',
    maxLimit: MAX_LIMIT,
    filters: {
      funnel_id: equals('s.funnel_id', 'Only sessions of this funnel.', { counter: 'funnel_id' }),
    },
  }),
  name: 'replies',
  countedAs: 'sessions',
}

export function replies(app: FastifyInstance, { reads }: PublicContext): void {
  listRoute(app, reads, '/replies', list, {
    operationId: 'listReplies',
    tag: 'Sessions',
    summary: 'List the form replies of all sessions',
    description:
      'One item for each session, with all its replies, newest session first. With an `updated_at` filter: the sessions that changed in the window, oldest change first; a new or changed reply changes its session.',
  })
}
