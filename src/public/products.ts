// Products with their prices: the list, and one product by id.
import type { FastifyInstance } from 'fastify'
import { instant, json, shape, text } from '../lib/shape/shape.ts'
import type { List } from '../lists/list.ts'
import type { PublicContext } from './context.ts'
import { detailRoute, listRoute } from './resource.ts'

const orNull = (type: string, description: string, more: object = {}) => ({
  type: [type, 'null'],
  description,
  ...more,
})
const minor = 'in the minor unit of the currency: 1999 with USD is $19.99'

const trial = {
  type: ['object', 'null'],
  description: 'The trial that precedes the first full payment.',
  additionalProperties: false,
  required: ['type', 'duration_interval', 'duration_count', 'price', 'currency'],
  properties: {
    type: orNull('string', 'Kind of trial.'),
    duration_interval: orNull('string', 'Unit of the duration.'),
    duration_count: orNull('integer', 'How many units the trial lasts.'),
    price: orNull('integer', `Price of the trial, ${minor}.`),
    currency: orNull('string', 'ISO 4217 code.'),
  },
}

const price = {
  type: 'object',
  additionalProperties: false,
  required: 'id external_id type amount currency status created_at interval interval_count trial_type trial'.split(' '),
  properties: {
    id: { type: 'string', description: 'Identifier of the price.' },
    external_id: orNull('string', 'Identifier in the system it came from.'),
    type: { type: 'string', enum: ['one_time', 'recurring'], description: 'Paid once or again and again.' },
    amount: { type: 'integer', description: `Amount, ${minor}.` },
    currency: { type: 'string', description: 'ISO 4217 code.' },
    status: orNull('string', 'State of the price.'),
    created_at: orNull('string', 'When it was made.', { format: 'date-time' }),
    interval: orNull('string', 'Unit of the billing interval.', { enum: ['day', 'week', 'month', 'year', null] }),
    interval_count: orNull('integer', 'How many units lie between two payments.'),
    trial_type: orNull('string', 'Kind of trial.'),
    trial,
  },
}

const product = shape('Product', 'p', {
  id: text('Identifier.', { example: 'prod_monthly' }),
  name: text('Name shown to customers.', { example: 'Monthly plan' }),
  status: text('Whether it is on sale.', { enum: ['active', 'archived'] }),
  platform: text('Where it is sold.', { nullable: true, example: 'web' }),
  external_id: text('Identifier in the system it came from.', { nullable: true }),
  description: text('Description shown to customers.', { nullable: true }),
  statement_descriptor: text("What stands on the customer's card statement.", { nullable: true }),
  entitlement: text('What owning it unlocks.', { nullable: true, example: 'premium' }),
  metadata: json('Free properties.', { schema: { type: 'object', additionalProperties: true }, example: {} }),
  created_at: instant('When it was made.'),
  updated_at: instant('When it was last changed.'),
  prices: json('Its prices.', { schema: { type: 'array', items: price } }),
})

const list: List = {
  name: 'products',
  shape: product,
  table: 'products',
  alias: 'p',
  joins: '',
  maxLimit: 100,
  sync: false,
  filters: {},
}

const FIND = {
  name: 'find product',
  text: `select ${product.columns} from products p where p.project_id = $1 and p.id = $2`,
}

export function products(app: FastifyInstance, { reads }: PublicContext): void {
  listRoute(app, reads, '/products', list, {
    operationId: 'listProducts',
    tag: 'Products',
    summary: 'List products',
    description: 'Newest first, each with its prices.',
  })
  detailRoute(app, reads, '/products/:id', product, FIND, {
    operationId: 'getProduct',
    tag: 'Products',
    summary: 'Get a product',
    description: 'The product with its prices.',
  })
}
