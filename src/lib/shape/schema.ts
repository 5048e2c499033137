// JSON Schemas as they are declared: functions that answer plain objects, for bodies, queries and the description.

/** A JSON Schema, of as many keywords as were given. */
export interface Schema {
  type?: unknown
  [keyword: string]: unknown
}

export interface ObjectSchema extends Schema {
  type: 'object'
  properties: Record<string, Schema>
  required?: string[]
}

/** Those that an object may lack; JSON Schema says it of the object, we where the property is declared. */
const optional = new WeakSet<Schema>()

const typed =
  (type: string) =>
  (keywords: object = {}): Schema => ({ type, ...keywords })

export const Type = {
  String: typed('string'),
  Integer: typed('integer'),
  Number: typed('number'),
  Boolean: typed('boolean'),
  Null: typed('null'),
  Unknown: (keywords: object = {}): Schema => ({ ...keywords }),
  Literal: (value: string, keywords: object = {}): Schema => ({ type: 'string', const: value, ...keywords }),
  Array: (items: Schema, keywords: object = {}): Schema => ({ type: 'array', items, ...keywords }),
  Union: (anyOf: Schema[], keywords: object = {}): Schema => ({ anyOf, ...keywords }),
  /** Properties of any name, each of this form. */
  Record: (value: Schema, keywords: object = {}): Schema => ({
    type: 'object',
    patternProperties: { '^.*$': value },
    ...keywords,
  }),
  Object(properties: Record<string, Schema>, keywords: object = {}): ObjectSchema {
    const required = Object.keys(properties).filter((name) => !optional.has(properties[name]!))
    return { type: 'object', ...(required.length > 0 && { required }), properties, ...keywords }
  },
  Optional(schema: Schema): Schema {
    const marked = { ...schema }
    optional.add(marked)
    return marked
  },
}
