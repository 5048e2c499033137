// What makes a kind of record: its fields, the table it goes into, and what it refers to.
import type { Fields } from './fields.ts'

export interface Kind {
  /** The name in `record`. */
  name: string
  table: string
  /** Whose the rows are. */
  tenant: 'project_id' | 'organization_id'
  /** What tells one row of the tenant from another. */
  key: readonly string[]
  fields: Fields
  /** Columns that hold the id of another record of the project, and the name of its kind. */
  references?: { readonly [column: string]: string }
  /** SQL: which staged rows, `s`, contradict what is stored. */
  misfits?: readonly { reason: string; where: (tenant: Tenant) => string }[]
  /** What `counts` knows of the table: each field, and the SQL of its value in a row; null is not counted. */
  counts?: { readonly [field: string]: (row: string) => string }
  /** Columns that keep the value they were first stored with. */
  kept?: readonly string[]
  /** Columns that no line brings, with the SQL of what a new row has in them. */
  added?: (scope: Scope) => { readonly [column: string]: string }
  /** SQL: which rows an import never changes, whatever a line says. */
  untouchable?: (row: string) => string
}

/** For whom an import writes, as SQL literals. */
export interface Tenant {
  project_id: string
  organization_id: string
}

export interface Scope extends Tenant {
  /** The instant that rows are stamped with, as an SQL literal. */
  stamp: string
  /** Whether rows are stamped also when their lines bring a time. */
  live: boolean
}
