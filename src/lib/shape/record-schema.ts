// The JSON Schema of a record's fields.

import type { Fields } from './fields.ts'
import type { Kind } from './row-writer.ts'

const JSON_TYPES: Record<Exclude<Kind, 'json'>, Record<string, unknown>> = {
  text: { type: 'string' },
  instant: { type: 'string', format: 'date-time' },
  integer: { type: 'integer' },
  decimal: { type: 'number' },
  boolean: { type: 'boolean' },
}

export function objectSchema(fields: Fields): Record<string, unknown> {
  const properties = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, fieldSchema(field)]))
  return { type: 'object', properties, required: Object.keys(fields), additionalProperties: false }
}

function fieldSchema(field: Fields[string]): Record<string, unknown> {
  const { description } = field
  if (field.kind === 'object') {
    const title = field.name && { title: field.name }
    return orNull({ description, ...title, ...objectSchema(field.fields) }, field.nullable)
  }
  const base = field.kind === 'json' ? (field.schema ?? { type: 'object' }) : JSON_TYPES[field.kind]
  const { enum: values, example } = field
  const schema = {
    description,
    ...base,
    ...(values && { enum: values }),
    ...(example !== undefined && { examples: [example] }),
  }
  return orNull(schema, field.nullable === true)
}

function orNull(schema: Record<string, unknown>, nullable: boolean): Record<string, unknown> {
  if (!nullable) return schema
  const type = [schema.type as string | string[]].flat()
  return {
    ...schema,
    type: type.includes('null') ? type : [...type, 'null'],
    ...(schema.enum !== undefined && { enum: [...(schema.enum as unknown[]), null] }),
  }
}
