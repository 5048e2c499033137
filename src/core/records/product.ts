// A product with its prices: the API's shape and the import's fields.
import { instant, json, shape, text } from '../../lib/shape/shape.ts'
import { orElse, required } from './import/fields.ts'
import * as from from './import/types.ts'
import { priceSchema, prices } from './price.ts'
import { all, field, record, shownFields } from './record.ts'

const fields = {
  id: field(text('Identifier.', { example: 'prod_monthly' }), required(from.id)),
  name: field(text('Name shown to customers.', { example: 'Monthly plan' }), required(from.name)),
  status: field(
    text('Whether it is on sale.', { enum: ['active', 'archived'] }),
    required(from.oneOf('active', 'archived')),
  ),
  platform: field(text('Where it is sold.', { nullable: true, example: 'web' }), from.label),
  external_id: field(text('Identifier in the system that it came from.', { nullable: true }), from.label),
  description: field(text('Description shown to customers.', { nullable: true }), from.freeText),
  statement_descriptor: field(text("Text on the customer's card statement.", { nullable: true }), from.label),
  entitlement: field(text('What a customer who owns it may use.', { nullable: true, example: 'premium' }), from.label),
  metadata: field(
    json('Any properties.', { schema: { type: 'object', additionalProperties: true }, example: {} }),
    orElse('{}', from.object),
  ),
  created_at: field(instant('When it was created.'), required(from.past)),
  updated_at: field(instant('When it was last changed.'), from.past),
  prices: field(json('Its prices.', { schema: { type: 'array', items: priceSchema } }), prices),
}

export const productRecord = record({ name: 'product', table: 'products', fields, counts: { '': all } })

export const product = shape('Product', 'p', shownFields(fields))
