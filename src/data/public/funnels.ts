// Funnels: the list with its filters, and one funnel by id. A deleted funnel is still found by id.
import type { FastifyInstance } from 'fastify'
import { equals, listOf } from '../../core/lists/list.ts'
import { funnel, funnelRecord } from '../../core/records/funnel.ts'
import { Type } from '../../lib/shape/schema.ts'
import { fold } from '../../lib/text.ts'
import type { PublicContext } from './context.ts'
import { detailRoute, listRoute } from './resource.ts'

const list = listOf(funnelRecord, {
  shape: funnel,
  alias: 'f',
  maxLimit: 100,
  filters: {
    title: {
      schema: Type.String({ description: 'Only funnels whose title contains this text, case-insensitive.' }),
      where: (value) => `strpos(f.title_folded, ${value}) > 0`,
      param: fold,
    },
    alias: equals('f.alias', 'Only funnels with this alias.'),
    type: equals('f.type', 'Only funnels of this type, such as `default` or `cancellation`.'),
    deleted: {
      schema: Type.Boolean({ description: '`true` includes deleted funnels.', default: false }),
      where: () => '',
    },
  },
  defaultFilter: ({ deleted }) => (deleted ? { counter: 'all' } : { where: 'f.deleted_at is null', counter: '' }),
})

export function funnels(app: FastifyInstance, { reads }: PublicContext): void {
  listRoute(app, reads, '/funnels', list, {
    operationId: 'listFunnels',
    tag: 'Funnels',
    summary: 'List funnels',
    description:
      'Newest first. With an `updated_at` filter: oldest change first, for a sync. Filters combine with AND. Deleted funnels are left out unless `filter[deleted]` is `true`.',
  })
  detailRoute(app, reads, '/funnels/:id', list, {
    operationId: 'getFunnel',
    tag: 'Funnels',
    summary: 'Get a funnel',
    description: 'A deleted funnel is still found by its id.',
  })
}
