// One declaration of a record → its select list, its JSON Schema, and a writer that turns a row of text into JSON.
import { type TSchema, Type } from 'typebox'
import type { Row } from './db.ts'
import { instantFromPg } from './time.ts'

/** How a column's text becomes JSON. */
type Kind = 'text' | 'instant' | 'integer' | 'decimal' | 'boolean' | 'json'

export interface FieldOptions {
  /** The SQL expression; by default the column of the field's name in the shape's own table. */
  sql?: string
  nullable?: boolean
  example?: unknown
  enum?: readonly string[]
  /** For `json` fields: what stands in it. */
  schema?: Record<string, unknown>
}

interface Leaf extends FieldOptions {
  kind: Kind
  description: string
}

interface Nested {
  kind: 'object'
  description: string
  fields: Fields
  nullable: boolean
}

export type Fields = { readonly [name: string]: Leaf | Nested }

export interface Shape {
  name: string
  /** The select list, in the order that `write` expects. */
  columns: string
  schema: TSchema
  /** The row's JSON; its columns begin at `offset`. */
  write(row: Row, offset?: number): string
}

const leaf =
  (kind: Kind) =>
  (description: string, options: FieldOptions = {}): Leaf => ({ kind, description, ...options })

export const text = leaf('text')
/** A date-time, written in UTC with six fraction digits. */
export const instant = leaf('instant')
export const integer = leaf('integer')
/** A number of arbitrary precision, written with all the digits the column has. */
export const decimal = leaf('decimal')
export const boolean = leaf('boolean')
/** A column that holds JSON already. */
export const json = leaf('json')

/** A nested object. When `nullable`, it is null where its first field is null. */
export function object(description: string, fields: Fields, { nullable = false } = {}): Nested {
  return { kind: 'object', description, fields, nullable }
}

/** Declares a record. `alias` is the table alias whose columns the fields are, unless they bring their own SQL. */
export function shape(name: string, alias: string, fields: Fields): Shape {
  const columns: string[] = []
  const write = objectWriter(fields, alias, columns)
  return {
    name,
    columns: columns.join(', '),
    schema: Type.Unsafe({ title: name, ...objectSchema(fields) }),
    write: (row, offset = 0) => write(row, offset),
  }
}

type Writer = (row: Row, offset: number) => string

function objectWriter(fields: Fields, alias: string, columns: string[]): Writer {
  const parts = Object.entries(fields).map(([name, field], n) => {
    const prefix = `${n === 0 ? '{' : ','}${JSON.stringify(name)}:`
    const value =
      field.kind === 'object' ? nestedWriter(field, alias, columns) : leafWriter(name, field, alias, columns)
    return { prefix, value }
  })
  return (row, offset) => {
    let out = ''
    for (const { prefix, value } of parts) out += prefix + value(row, offset)
    return `${out}}`
  }
}

function nestedWriter(field: Nested, alias: string, columns: string[]): Writer {
  const first = columns.length
  const write = objectWriter(field.fields, alias, columns)
  if (!field.nullable) return write
  return (row, offset) => (row[offset + first] === null ? 'null' : write(row, offset))
}

function leafWriter(name: string, field: Leaf, alias: string, columns: string[]): Writer {
  const index = columns.push(field.sql ?? `${alias}.${name}`) - 1
  const encode = ENCODERS[field.kind]
  return (row, offset) => {
    const value = row[offset + index]
    if (value === undefined) throw new Error(`Bug: the row has no column for ${name}.`)
    return value === null ? 'null' : encode(value)
  }
}

const asIs = (value: string) => value

const ENCODERS: Record<Kind, (text: string) => string> = {
  text: quote,
  instant: (value) => `"${instantFromPg(value)}"`,
  integer: asIs,
  decimal: asIs,
  boolean: (value) => (value === 't' ? 'true' : 'false'),
  json: asIs,
}

// What JSON must escape; nearly no text has any of it.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for.
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/

/** The text as a JSON string. */
export function quote(value: string): string {
  return ESCAPED.test(value) ? JSON.stringify(value) : `"${value}"`
}

const JSON_TYPES: Record<Exclude<Kind, 'json'>, Record<string, unknown>> = {
  text: { type: 'string' },
  instant: { type: 'string', format: 'date-time' },
  integer: { type: 'integer' },
  decimal: { type: 'number' },
  boolean: { type: 'boolean' },
}

function objectSchema(fields: Fields): Record<string, unknown> {
  const properties = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, fieldSchema(field)]))
  return { type: 'object', properties, required: Object.keys(fields), additionalProperties: false }
}

function fieldSchema(field: Leaf | Nested): Record<string, unknown> {
  const { description } = field
  if (field.kind === 'object') return orNull({ description, ...objectSchema(field.fields) }, field.nullable)
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
