// The fields of a record, as `shape.ts` declares them, and the types of their values.
import type { Kind } from './row-writer.ts'
import type { EnumOr, Schema, Typed, TypeOf } from './schema.ts'

/** Of a field whose value is one of `E`, null if `N` says so, and of the type `J` if it is JSON. */
export interface FieldOptions<E extends string = string, N extends boolean = boolean, J = unknown> {
  /** The SQL expression; by default the column of the field's name in the shape's own table. */
  sql?: string
  nullable?: N
  example?: unknown
  enum?: readonly E[]
  /** For `json` fields: the schema of the value. */
  schema?: Schema<J>
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

export type OrNull<N extends boolean> = true extends N ? null : never
export type LeafOf<K extends Kind, E, N extends boolean, J> =
  | OrNull<N>
  | (K extends keyof Types ? EnumOr<E, Types[K]> : J)
