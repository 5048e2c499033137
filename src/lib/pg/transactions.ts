// Statements on plain connections, for transactions and slow statements: rows by column name.
import type pg from 'pg'
import { Batch, callPg, Prepared, run } from './protocol.ts'
import type { NamedRow, Param, Query, Statement } from './types.ts'

/** Runs a statement, and returns its rows and PostgreSQL's command tag. */
export type Send = (statement: Statement, params: readonly Param[]) => Promise<Result>

export interface Result {
  rows: NamedRow[]
  /** `UPDATE 3`, `COMMIT`. */
  commandTag: string
}

/**
 * Runs the statements of a transaction: those started in one turn of the event loop are sent together, run in order and
 * return together. Those after one that fails are not run; they fail with its error.
 */
export function sendTogether(client: pg.ClientBase): Send {
  let open: Batch | undefined
  const openBatch = () => {
    const batch = new Batch()
    process.nextTick(() => {
      open = undefined
      batch.send(client)
    })
    return batch
  }
  return (statement, params) =>
    callPg((done) => {
      open ??= openBatch()
      const query = new NamedQuery(statement, params, columnsOf(client))
      const callback = (error: Error | null) => done(error, query)
      query.callback = callback
      open.add(query)
    })
}

/** Statements for a session of the caller's, sent as `sendTogether` sends them. */
export function sessionQuery(client: pg.ClientBase): Query {
  const send = sendTogether(client)
  return async <R extends NamedRow>(given: string | Statement, params: readonly Param[] = []) =>
    (await send(typeof given === 'string' ? { text: given } : given, params)).rows as R[]
}

/** Runs one statement; with a name it is prepared once on each connection, and its column names are requested once. */
export async function queryRows(
  client: pg.ClientBase,
  statement: Statement,
  params: readonly Param[],
): Promise<NamedRow[]> {
  const { name, text } = statement
  if (name === undefined) return (await queryUnprepared(client, text, params)).rows
  return (await run(client, new NamedQuery({ name, text }, params, columnsOf(client)))).rows
}

/** The rows of a statement as arrays. */
export async function queryArrays(
  client: pg.ClientBase,
  statement: Statement,
  params: readonly Param[],
): Promise<(string | null)[][]> {
  return (await run(client, new ArrayQuery(statement, params))).rows
}

function queryUnprepared(client: pg.ClientBase, text: string, params: readonly Param[]) {
  // pg declares its parameters mutable, though it only reads them.
  const values = params as unknown[]
  return callPg<pg.QueryResult<NamedRow>>((done) => client.query<NamedRow>({ text, values }, done))
}

/** The columns of a statement: their names, and an empty row as the template of all rows. */
interface Columns {
  names: string[]
  empty: NamedRow
}

const NO_COLUMNS: Columns = { names: [], empty: {} }

/** By statement name. The columns of a prepared statement cannot change: PostgreSQL would refuse to run it. */
type Known = Map<string, Columns>
const known = new WeakMap<pg.ClientBase, Known>()

function columnsOf(client: pg.ClientBase): Known {
  const columns = known.get(client) ?? new Map()
  known.set(client, columns)
  return columns
}

/** The values of a row, as pg's parser passes them. */
interface DataRow {
  fields: (string | null)[]
}

class NamedQuery extends Prepared implements Result {
  readonly rows: NamedRow[] = []
  commandTag = ''
  readonly #known: Known
  #columns: Columns | undefined

  constructor(statement: Statement, values: readonly Param[], known: Known) {
    super(statement, values)
    this.#known = known
    this.#columns = this.name === undefined ? undefined : known.get(this.name)
  }

  override get needsColumnNames(): boolean {
    return this.#columns === undefined
  }

  // The following methods are called by pg.

  override handleRowDescription({ fields }: { fields: { name: string }[] }): void {
    const names = fields.map(({ name }) => name)
    this.#columns = { names, empty: Object.fromEntries(names.map((name) => [name, null])) }
  }

  override handleDataRow({ fields }: DataRow): void {
    const { names, empty } = this.#columns!
    const row = { ...empty }
    for (let n = 0; n < names.length; n += 1) row[names[n]!] = fields[n]!
    this.rows.push(row)
  }

  override handleCommandComplete({ text }: { text: string }): void {
    this.commandTag = text
    if (this.name !== undefined && !this.#known.has(this.name)) this.#known.set(this.name, this.#columns ?? NO_COLUMNS)
  }
}

class ArrayQuery extends Prepared {
  readonly rows: (string | null)[][] = []

  // Called by pg for each row.
  override handleDataRow({ fields }: DataRow): void {
    this.rows.push(fields)
  }
}
