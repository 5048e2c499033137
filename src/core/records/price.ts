// The prices of a product, stored as JSON in the form and order in which the API returns them.
import type { JsonValue } from '../../lib/json/read.ts'
import {
  eachField,
  eachItem,
  type Fields,
  fieldsOf,
  group,
  limited,
  type Reading,
  required,
  type Type,
} from './import/fields.ts'
import { currency, minor } from './import/money-types.ts'
import { id, integer, label, oneOf, past } from './import/types.ts'

const INTERVALS = ['day', 'week', 'month', 'year'] as const
export const interval = oneOf(...INTERVALS)

const orNull = (type: string, description: string, more: object = {}) => ({
  type: [type, 'null'],
  description,
  ...more,
})
const UNIT = 'in the minor unit of the currency: 1999 with USD is $19.99'

/** A property of a price: its JSON Schema, and how the import reads it. */
type Property = { schema: object; read: Type }

const trial: Record<string, Property> = {
  type: { schema: orNull('string', 'Kind of trial.'), read: label },
  duration_interval: { schema: orNull('string', 'Unit of the duration.'), read: label },
  duration_count: { schema: orNull('integer', 'Duration of the trial in these units.'), read: integer(0) },
  price: { schema: orNull('integer', `Price of the trial, ${UNIT}.`), read: minor },
  currency: { schema: orNull('string', 'ISO 4217 code.'), read: currency },
}

const price: Record<string, Property> = {
  id: { schema: { type: 'string', description: 'Identifier of the price.' }, read: required(id) },
  external_id: { schema: orNull('string', 'Identifier in the system that it came from.'), read: label },
  type: {
    schema: { type: 'string', enum: ['one_time', 'recurring'], description: 'Whether it is paid once or regularly.' },
    read: required(oneOf('one_time', 'recurring')),
  },
  amount: { schema: { type: 'integer', description: `Amount, ${UNIT}.` }, read: required(minor) },
  currency: { schema: { type: 'string', description: 'ISO 4217 code.' }, read: required(currency) },
  status: { schema: orNull('string', 'State of the price.'), read: label },
  created_at: { schema: orNull('string', 'When it was created.', { format: 'date-time' }), read: past },
  interval: {
    schema: orNull('string', 'Unit of the billing interval.', { enum: [...INTERVALS, null] }),
    read: interval,
  },
  interval_count: { schema: orNull('integer', 'Number of units between two payments.'), read: integer(1) },
  trial_type: { schema: orNull('string', 'Kind of trial.'), read: label },
  trial: {
    schema: objectSchema(trial, {
      title: 'PriceTrial',
      type: ['object', 'null'],
      description: 'The trial that precedes the first full payment.',
    }),
    read: group(typesOf(trial)),
  },
}

export const priceSchema = objectSchema(price, { title: 'Price', type: 'object' })

/** The import field: a list of prices, as JSON with every property, null where there is none. */
export const prices: Type = {
  json: true,
  absent: '[]',
  read: (value, reading) => JSON.stringify(eachItem(value, (item) => readObject(PRICE, item, reading))),
}

const PRICE = fieldsOf(typesOf(price))

function readObject(fields: Fields, value: JsonValue, reading: Reading): object {
  const object: Record<string, unknown> = {}
  eachField(fields, value, (name, type, given, siblings) => {
    if (given === null) object[name] = null
    else object[name] = type.fields ? readObject(type.fields, given, reading) : type.read(given, reading, siblings)
  })
  return object
}

function typesOf(properties: Record<string, Property>): Record<string, Type> {
  return Object.fromEntries(Object.entries(properties).map(([name, { read }]) => [name, read]))
}

function objectSchema(properties: Record<string, Property>, head: object) {
  return {
    ...head,
    additionalProperties: false,
    required: Object.keys(properties),
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, { schema, read }]) => [name, limited(schema, read)]),
    ),
  }
}
