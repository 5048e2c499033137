// Functions that build JSON Schemas as plain objects, for bodies, queries and the description.

/** A JSON Schema with any keywords. */
export interface Schema {
  type?: unknown
  [keyword: string]: unknown
}

export interface ObjectSchema extends Schema {
  type: 'object'
  properties: Record<string, Schema>
  required?: string[]
}

/** Marks optional properties; JSON Schema lists the required ones on the object instead. */
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
  /** An object with properties of any name and this schema. */
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
