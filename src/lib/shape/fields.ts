// The fields of a record, as `shape.ts` declares them, and the types of their values.
import type { Kind } from './row-writer.ts'
import type { EnumOr, Schema, Typed, TypeOf } from './schema.ts'

export interface FieldOptions {
  /** The SQL expression; by default the column of the field's name in the shape's own table. */
  sql?: string
  nullable?: boolean
  example?: unknown
  enum?: readonly string[]
  /** For `json` fields: the schema of the value. */
  schema?: Schema
}

export interface Leaf<T = unknown> extends FieldOptions, Typed<T> {
  kind: Kind
  description: string
}

export interface Nested<T = unknown> extends Typed<T> {
  kind: 'object'
  description: string
  fields: Fields
  nullable: boolean
  /** Its name in the description if several shapes share it; by default the names of the shape and the field. */
  name: string | undefined
}

export type Fields = { readonly [name: string]: Leaf | Nested }

/** The object that a row of these fields is. */
export type RecordOf<F> = { -readonly [K in keyof F]: TypeOf<F[K]> }

interface Types {
  text: string
  instant: string
  integer: number
  decimal: number
  boolean: boolean
}

export type OrNull<O> = O extends { nullable: infer N } ? (true extends N ? null : never) : never
export type LeafOf<K extends Kind, O> =
  | OrNull<O>
  | (K extends keyof Types ? EnumOr<O, Types[K]> : O extends { schema: infer S } ? TypeOf<S> : object)
