// An experiment: the API's shape and the import's fields.
import { boolean, instant, shape, text } from '../../lib/shape/shape.ts'
import { required } from './import/fields.ts'
import * as from from './import/types.ts'
import { all, field, record, shownFields } from './record.ts'

const fields = {
  id: field(text('Identifier.', { example: 'exp_price' }), required(from.id)),
  title: field(text('Title.', { nullable: true, example: 'Price on the first screen' }), from.name),
  alias: field(text('Short name.', { nullable: true, example: 'price-first' }), from.label),
  enabled: field(boolean('Whether it is running.'), from.boolean),
  created_at: field(instant('When it was created.'), required(from.past)),
  updated_at: field(instant('When it was last changed.'), from.past),
}

export const experimentRecord = record({ name: 'experiment', table: 'experiments', fields, counts: { '': all } })

export const experiment = shape('Experiment', 'e', shownFields(fields))
