// Declares a record once: its fields as the API shows them and as the import reads them, its table, references and counters.
import type { Fields as ShapeFields } from '../../lib/shape/fields.ts'
import { type Fields, fieldsOf, limited, type Stored, type Type } from './import/fields.ts'

export interface Field {
  /** How the API shows it; missing for a field that only the import knows. */
  shown?: ShapeFields[string]
  /** How the import reads it; missing for a field that only the API knows. */
  read?: Type
  /** The kind of the record whose id it is, when that record must exist. */
  refersTo?: string
  /** SQL of what an erasure leaves in the column, given the column; missing for a field without personal data. */
  erased?: (column: string) => string
  /** The fields of an object that is nested in the API, and flat in the import and in the table. */
  nested?: RecordFields
}

export type RecordFields = { readonly [name: string]: Field }

type Options = Pick<Field, 'refersTo' | 'erased'>

/** A field of both the API and the import. Its description ends with the limit of the import. */
export const field = (shown: ShapeFields[string], read: Type, options: Options = {}): Field => ({
  shown: limited(shown, read),
  read,
  ...options,
})
export const shownOnly = (shown: ShapeFields[string]): Field => ({ shown })
export const importedOnly = (read: Type, options: Options = {}): Field => ({ read, ...options })
/** An object of the API whose fields are flat in the import and in the table. */
export const nested = (object: (fields: ShapeFields) => ShapeFields[string], fields: RecordFields): Field => ({
  shown: object(shownFields(fields)),
  nested: fields,
})

// What an erasure leaves in a column.
export const toNull = () => 'null'
export const toEmptyObject = () => "'{}'"

/** SQL of the counted value in a row; null is not counted. */
export type Counter = (row: string) => string

/** A kind of record, as the import needs it. */
export interface Kind {
  /** The name in `record`. */
  name: string
  table: string
  /** The column of the tenant. */
  tenant: 'project_id' | 'organization_id'
  /** The columns that identify a row of the tenant. */
  key: readonly string[]
  fields: Fields
  /** The columns with personal data, each with the SQL of what an erasure leaves in it; see `erasedColumns`. */
  erased: readonly { column: string; json: boolean; sql: (column: string) => string }[]
  /** Columns that hold the id of another record of the project, and the name of its kind. */
  references: { readonly [column: string]: string }
  /** SQL: which staged rows, `s`, contradict what is stored. */
  conflicts?: readonly { reason: string; where: (tenant: Tenant) => string }[]
  /** The counters of its list, by their field in `counts`. A record without them has no list. */
  counts?: { readonly [field: string]: Counter }
  /** The columns that follow from others where a line has no value of them; null: it does not follow. */
  derived?: (stored: (column: string) => Stored) => Readonly<Record<string, Stored>>
  /** Columns that an erasure keeps: a line about an erased person, who has lost the fields that they follow from, does not clear them. */
  lasting?: readonly string[]
  /** Columns that keep the value with which they were first stored. */
  kept?: readonly string[]
  /** Columns that no line contains, with the SQL of their value in a new row. */
  added?: (scope: Scope) => { readonly [column: string]: string }
  /** SQL: which rows an import never changes. */
  readOnlyRows?: (row: string) => string
}

/** The tenant that an import writes for, as SQL literals. */
export interface Tenant {
  project_id: string
  organization_id: string
}

export interface Scope extends Tenant {
  /** The instant that rows are stamped with, as an SQL literal. */
  stamp: string
  /** Whether rows are stamped even if their lines contain a time. */
  live: boolean
}

type Declaration = Omit<Kind, 'fields' | 'references' | 'erased' | 'tenant' | 'key'> &
  Partial<Pick<Kind, 'tenant' | 'key'>> & { fields: RecordFields }

/** The kind with its counters by name, if any are declared: a list needs them. */
type KindOf<D> = D extends { counts: infer C } ? Omit<Kind, 'counts'> & { counts: C } : Kind

/** Declares a kind of record; by default it belongs to a project and is identified by `id`. */
export function record<D extends Declaration>(declaration: D): KindOf<D> {
  const flat = flattened(declaration.fields)
  const types = flat.flatMap(([name, { read }]) => (read ? [[name, read] as const] : []))
  const kind: Kind = {
    tenant: 'project_id',
    key: ['id'],
    ...declaration,
    fields: fieldsOf(Object.fromEntries(types)),
    references: Object.fromEntries(flat.flatMap(([name, { refersTo }]) => (refersTo ? [[name, refersTo]] : []))),
    erased: flat.flatMap(([name, { erased, read }]) => {
      if (!erased) return []
      const column = { column: name, json: read?.json === true, sql: erased }
      return read?.folded ? [column, { ...column, column: `${name}_folded` }] : [column]
    }),
  }
  return kind as KindOf<D>
}

/** The fields of the API, for a shape. */
export function shownFields(fields: RecordFields): ShapeFields {
  const shown = Object.entries(fields).flatMap(([name, { shown }]) => (shown ? [[name, shown] as const] : []))
  return Object.fromEntries(shown)
}

/** SQL for `set`: removes the personal data of a row. */
export function erasedColumns({ erased }: Kind, row?: string): string {
  return erased.map(({ column, sql }) => `${column} = ${sql(placed(column, row))}`).join(', ')
}

/** SQL: whether a row still has personal data. */
export function hasPersonalData({ erased }: Kind, row?: string): string {
  const conditions = erased.map(({ column, json, sql }) => {
    const place = placed(column, row)
    return `${place}${json ? '::text' : ''} is distinct from ${sql(place)}`
  })
  return `(${conditions.join(' or ')})`
}

/** Counters whose value is the column of their name. */
export function countedBy<C extends string>(...columns: C[]): { readonly [field in C]: Counter } {
  return Object.fromEntries(columns.map((column) => [column, (row: string) => `${row}.${column}`])) as never
}

/** The counter of all rows. */
export const all: Counter = () => "''"

const placed = (column: string, row: string | undefined) => (row ? `${row}.${column}` : column)

function flattened(fields: RecordFields): [string, Field][] {
  return Object.entries(fields).flatMap(([name, field]) =>
    field.nested ? flattened(field.nested) : [[name, field] as [string, Field]],
  )
}
