// One declaration of a record → its select list, its JSON Schema, and a writer that turns a row into JSON.
import { JsonBytes } from '../json/buffer.ts'
import { packRow, type Row, type TakeRow } from '../pg/row-bytes.ts'
import type { NamedRow } from '../pg/types.ts'
import { type Kind, rowWriter, type Step, type WriteRow } from './row-writer.ts'
import type { Schema } from './schema.ts'

export interface FieldOptions {
  /** The SQL expression; by default the column of the field's name in the shape's own table. */
  sql?: string
  nullable?: boolean
  example?: unknown
  enum?: readonly string[]
  /** For `json` fields: the schema of the value. */
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
  /** Its name in the description if several shapes share it; by default the names of the shape and the field. */
  name: string | undefined
}

export type Fields = { readonly [name: string]: Leaf | Nested }

export interface Shape {
  name: string
  /** The select list, in the order that rows are written. */
  columns: string
  schema: Schema
  /** The row's JSON; its columns begin at `offset`. */
  write(row: Row, offset?: number): Buffer
  /** The select list for named rows: each column has a unique name, so that other columns can be selected as well. */
  namedColumns: string
  /** The JSON of a row that was read with `namedColumns`. */
  writeNamed(row: NamedRow): Buffer
  /** Writes the rows, separated by commas, between two texts: `[` and `]`, or more. */
  writeList(rows: readonly Row[], before: string, after: string, offset?: number): JsonBytes
  /** The same for rows that arrive one by one. */
  beginList(before: string, offset?: number): RowList
}

export interface RowList {
  add: TakeRow
  end(after: string): JsonBytes
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
/** A column that contains JSON. */
export const json = leaf('json')

/** A nested object. When `nullable`, it is null where its first field is null. Shapes that share it give it a `name`. */
export function object(
  description: string,
  fields: Fields,
  { nullable = false, name }: { nullable?: boolean; name?: string } = {},
): Nested {
  return { kind: 'object', description, fields, nullable, name }
}

/** Declares a record. `alias` is the table alias whose columns the fields are, unless they bring their own SQL. */
export function shape(name: string, alias: string, fields: Fields): Shape {
  const { columns, steps } = compile(fields, alias)
  const write = rowWriter(steps)
  const writeRow = (row: Row, offset = 0) => {
    const json = new JsonBytes()
    write(json, row, offset)
    const written = Buffer.from(json.written())
    json.free()
    return written
  }
  return {
    name,
    columns: columns.join(', '),
    schema: { title: name, ...objectSchema(fields) },
    write: writeRow,
    namedColumns: columns.map((column, n) => `${column} as ${nameOf(n)}`).join(', '),
    writeNamed: (row) => writeRow(packRow(columns.map((_, n) => row[nameOf(n)] ?? null))),
    writeList(rows, before, after, offset = 0) {
      const list = beginList(write, before, offset)
      for (const row of rows) list.add(row)
      return list.end(after)
    },
    beginList: (before, offset = 0) => beginList(write, before, offset),
  }
}

const nameOf = (column: number) => `c${column}`

function beginList(write: WriteRow, before: string, offset: number): RowList {
  const json = new JsonBytes().raw(before)
  let comma = ''
  return {
    add(row) {
      json.raw(comma)
      comma = ','
      write(json, row, offset)
    },
    end: (after) => json.raw(after),
  }
}

/** The columns of these fields, and the steps that write them. */
function compile(fields: Fields, alias: string): { columns: string[]; steps: Step[] } {
  const columns: string[] = []
  const steps: Step[] = []
  // Consecutive names and braces are joined into one piece.
  let pending = ''
  const prefix = () => {
    const piece = Buffer.from(pending)
    pending = ''
    return piece
  }

  function addObject(inner: Fields): void {
    let mark = '{'
    for (const [name, field] of Object.entries(inner)) {
      pending += `${mark}${JSON.stringify(name)}:`
      mark = ','
      if (field.kind !== 'object') {
        steps.push({ kind: field.kind, prefix: prefix() })
        columns.push(field.sql ?? `${alias}.${name}`)
      } else if (field.nullable) addNullable(field.fields)
      else addObject(field.fields)
    }
    pending += '}'
  }

  function addNullable(inner: Fields): void {
    const opening = { kind: 'object' as const, prefix: prefix(), columns: 0, steps: 0 }
    steps.push(opening)
    const columnsBefore = columns.length
    const stepsBefore = steps.length
    addObject(inner)
    steps.push({ kind: 'end', prefix: prefix() })
    opening.columns = columns.length - columnsBefore
    opening.steps = steps.length - stepsBefore
  }

  addObject(fields)
  steps.push({ kind: 'end', prefix: prefix() })
  return { columns, steps }
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
