// The prices of a product: kept as JSON in the very form and order in which the API answers them.
import type { JsonValue } from '../lib/json/read.ts'
import { eachField, eachItem, type Fields, fieldsOf, group, type Reading, required, type Type } from './fields.ts'
import { currency, minor } from './money-types.ts'
import { id, integer, oneOf, past, text } from './types.ts'

export const interval = oneOf('day', 'week', 'month', 'year')

const trial = group({ type: text, duration_interval: text, duration_count: integer(0), price: minor, currency })

const price = fieldsOf({
  id: required(id),
  external_id: text,
  type: required(oneOf('one_time', 'recurring')),
  amount: required(minor),
  currency: required(currency),
  status: text,
  created_at: past,
  interval,
  interval_count: integer(1),
  trial_type: text,
  trial,
})

export const prices: Type = {
  json: true,
  absent: '[]',
  read: (value, reading) => JSON.stringify(eachItem(value, (item) => readObject(price, item, reading))),
}

/** Every field of the declaration, in its order, null where there is none. */
function readObject(fields: Fields, value: JsonValue, reading: Reading): object {
  const object: Record<string, unknown> = {}
  eachField(fields, value, (name, type, given, siblings) => {
    if (given === null) object[name] = null
    else object[name] = type.fields ? readObject(type.fields, given, reading) : type.read(given, reading, siblings)
  })
  return object
}
