// Funnels: the list with its filters, and one funnel by id. A deleted funnel is still found by id.
import type { FastifyInstance } from 'fastify'
import { Type } from '../lib/shape/schema.ts'
import { instant, integer, json, shape, text } from '../lib/shape/shape.ts'
import { fold } from '../lib/text.ts'
import type { List } from '../lists/list.ts'
import type { PublicContext } from './context.ts'
import { detailRoute, listRoute } from './resource.ts'

const funnel = shape('Funnel', 'f', {
  id: text('Identifier.', { example: 'fun_quiz' }),
  title: text('Title that the team gave it.', { example: 'Sleep quiz' }),
  alias: text('Short name in addresses.', { nullable: true, example: 'sleep-quiz' }),
  type: text('Kind of funnel; `default` and `cancellation` are known, others are possible.', { example: 'default' }),
  status: text('State of publication.', { enum: ['draft', 'published', 'archived'] }),
  environment: text('Environment it runs in.', { example: 'production' }),
  version: integer('Version, growing with each publication.', { example: 3 }),
  variation_count: integer('How many variations run beside each other.', { example: 1 }),
  tags: json('Labels.', { schema: { type: 'array', items: { type: 'string' } }, example: ['music'] }),
  created_at: instant('When it was made.'),
  updated_at: instant('When it was last changed.'),
  last_published_at: instant('When it was last published.', { nullable: true }),
  deleted_at: instant('When it was deleted.', { nullable: true }),
})

const list: List = {
  name: 'funnels',
  shape: funnel,
  table: 'funnels',
  alias: 'f',
  joins: '',
  maxLimit: 100,
  sync: false,
  filters: {
    title: {
      schema: Type.String({ description: 'The title contains this, upper and lower case being equal.' }),
      where: (value) => `strpos(f.title_folded, ${value}) > 0`,
      param: fold,
    },
    alias: { schema: Type.String({ description: 'The alias equals this.' }), where: (value) => `f.alias = ${value}` },
    type: {
      schema: Type.String({ description: 'The type equals this; `default` and `cancellation` are known.' }),
      where: (value) => `f.type = ${value}`,
    },
    deleted: {
      schema: Type.Boolean({ description: '`true` includes deleted funnels.', default: false }),
      where: () => '',
    },
  },
  standing: ({ deleted }) => (deleted ? { counter: 'all' } : { where: 'f.deleted_at is null', counter: '' }),
}

const FIND = {
  name: 'find funnel',
  text: `select ${funnel.columns} from funnels f where f.project_id = $1 and f.id = $2`,
}

export function funnels(app: FastifyInstance, { reads }: PublicContext): void {
  listRoute(app, reads, '/funnels', list, {
    operationId: 'listFunnels',
    tag: 'Funnels',
    summary: 'List funnels',
    description:
      'Newest first. Filters combine with AND; deleted funnels are left out unless `filter[deleted]` is `true`.',
  })
  detailRoute(app, reads, '/funnels/:id', funnel, FIND, {
    operationId: 'getFunnel',
    tag: 'Funnels',
    summary: 'Get a funnel',
    description: 'A deleted funnel is still found by its id.',
  })
}
