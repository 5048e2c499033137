// A funnel: the API's shape and the import's fields.
import { instant, integer, json, object, shape, text } from '../../lib/shape/shape.ts'
import { folded, orElse, required } from './import/fields.ts'
import * as from from './import/types.ts'
import { all, field, record, shownFields } from './record.ts'

const fields = {
  id: field(text('Identifier.', { example: 'fun_quiz' }), required(from.id)),
  title: field(text('Title.', { example: 'Sleep quiz' }), required(folded(from.name))),
  alias: field(text('Short name for URLs.', { nullable: true, example: 'sleep-quiz' }), from.label),
  type: field(
    text('Kind of funnel, such as `default` or `cancellation`.', { example: 'default' }),
    orElse('default', from.label),
  ),
  status: field(
    text('Whether it is published.', { enum: ['draft', 'published', 'archived'] }),
    orElse('draft', from.oneOf('draft', 'published', 'archived')),
  ),
  environment: field(text('Environment it runs in.', { example: 'production' }), orElse('production', from.label)),
  version: field(integer('Version, which grows with each publication.', { example: 3 }), orElse(1, from.integer(0))),
  variation_count: field(
    integer('How many variations run at the same time.', { example: 1 }),
    orElse(1, from.integer(0)),
  ),
  tags: field(
    json('Labels.', { schema: { type: 'array', items: { type: 'string' } }, example: ['music'] }),
    from.texts(),
  ),
  created_at: field(instant('When it was created.'), required(from.past)),
  updated_at: field(instant('When it was last changed.'), from.past),
  last_published_at: field(instant('When it was last published.', { nullable: true }), from.instant),
  deleted_at: field(instant('When it was deleted.', { nullable: true }), from.instant),
}

export const funnelRecord = record({
  name: 'funnel',
  table: 'funnels',
  fields,
  // The list leaves out deleted funnels unless asked for all.
  counts: { '': (row) => `case when ${row}.deleted_at is null then '' end`, all },
})

export const funnel = shape('Funnel', 'f', shownFields(fields))

/** A funnel as other records show it, from a join with the alias `f`. */
export const nestedFunnel = (description: string) =>
  object(
    description,
    {
      id: text('Identifier of the funnel.', { sql: 'f.id' }),
      title: text('Title of the funnel.', { sql: 'f.title' }),
      alias: text('Short name of the funnel.', { sql: 'f.alias', nullable: true }),
      type: text('Kind of funnel.', { sql: 'f.type', example: 'default' }),
    },
    { nullable: true, name: 'FunnelSummary' },
  )
