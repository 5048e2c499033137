// The interface of the targets that a sync copies to.
import { Refusal } from '../../lib/errors.ts'
import { type Row, TABLES, type Table } from './tables.ts'

/** The position of a copy, committed together with the rows up to it. */
export interface State {
  /** The address of the copied server. */
  url: string
  /** The id of the copied project; not known of copies by older versions until their next run, and of older servers. */
  project?: string | null
  /** When the copied project was created; not known as `project`. Another project of this id was created at another instant. */
  project_created_at?: string | null
  /** The horizon up to which the copy is complete; null while the first run is not. */
  since: string | null
  /** The cursor from which the current run continues; null between runs. */
  cursor: string | null
  /** The number of records that the current run has stored. */
  records: number
}

/** The rows of a batch by table and group; they replace all stored rows of the group, and may be none. */
export type Batch = ReadonlyMap<Table, Groups>
export type Groups = ReadonlyMap<string, readonly Row[]>

export interface Target {
  /**
   * Opens the copy and makes its tables. If it lacked one, the next run reads everything. A database that became unavailable is
   * opened again by another call.
   */
  open(): Promise<void>
  /** The state of the copy; undefined when there is none yet. */
  state(): Promise<State | undefined>
  /** Stores the rows and the new state in one transaction. Throws when another sync has moved the state. */
  store(batch: Batch, before: State | undefined, after: State): Promise<void>
  /**
   * Removes the rows that were changed at or after this instant, which the server has lost or never had, and stores the new state
   * in the same transaction.
   */
  forget(voidFrom: string, before: State | undefined, after: State): Promise<void>
  /** Called after each complete run. */
  complete(): Promise<void>
  close(): Promise<void>
}

/** Its cause is the error of the connection. */
export class CopyUnreachable extends Refusal {}

export const FORMATS = ['ndjson', 'csv', 'parquet'] as const
export type Format = (typeof FORMATS)[number]

// The columns of the state that copies by older versions lack.
export const LATER_COLUMNS = ['project', 'project_created_at'] as const

export const movedByAnother = () =>
  new Refusal('Another sync is writing to this copy: its state has moved. Nothing of this batch was stored.')

export const sameState = (a: State | undefined, b: State | undefined) =>
  a?.since === b?.since && a?.cursor === b?.cursor && a?.records === b?.records

/** Refuses a file with a table of another program, into which rows would be written. `known`: the tables of the file. */
export function refuseOthersTables(path: string, known: ReadonlySet<string>): void {
  const other = TABLES.find(({ name }) => known.has(name))
  if (other && !known.has('tundish_sync'))
    throw new Refusal(`${path} has a table "${other.name}" that is not of a copy: name another file.`)
}

/** Whether a table was missing among those that were `known` before: dropped by its owner, or new in this version. */
export const lackedTable = (known: { has(name: string): boolean }) => TABLES.some(({ name }) => !known.has(name))

/** The statement for a copy that lacked a table. All records are read again, because those that stay as they are would never reach it. */
export const beginAgain = (table: string) => `update ${table} set since = null, cursor = null, records = 0`

export const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`
