// Plain connections, for transactions and whatever takes its time: rows by the names of their columns.
import type pg from 'pg'
import type { NamedRow, Param, Statement } from './db.ts'
import { answer, holdBack, Prepared, run } from './pg-inside.ts'

/**
 * Has a connection send what it is asked without waiting for the answers before; what is asked at one go goes in one
 * system call. To be called when nothing is under way on it.
 */
export function pipeline(client: pg.ClientBase, isPipelined: boolean): void {
  Object.assign(client, { pipeline: isPipelined })
}

/** Runs a statement; with a name it is prepared once on each connection, and its columns are asked for once. */
export async function ask(client: pg.ClientBase, statement: Statement, params: readonly Param[]): Promise<NamedRow[]> {
  const { name, text } = statement
  if (name === undefined) return (await askPg(client, { text, values: given(params) })).rows
  send(client)
  return (await run(client, new NamedQuery({ name, text }, params, columnsOf(client)))).found
}

/** The rows of a statement as arrays. */
export async function askForArrays(
  client: pg.ClientBase,
  statement: Statement,
  params: readonly Param[],
): Promise<(string | null)[][]> {
  send(client)
  return (await run(client, new ArrayQuery(statement, params))).found
}

/** Runs a command, and answers what PostgreSQL says that it did. */
export async function command(client: pg.ClientBase, text: string): Promise<string> {
  return (await askPg(client, { text })).command
}

function askPg(client: pg.ClientBase, query: pg.QueryConfig) {
  send(client)
  return answer<pg.QueryResult<NamedRow>>((done) => client.query<NamedRow>(query, done))
}

function send(client: pg.ClientBase): void {
  if ((client as pg.Client).pipeline) holdBack(client, process.nextTick)
}

// pg declares its parameters mutable, though it only reads them.
const given = (params: readonly Param[]) => params as unknown[]

/** The columns of a statement: their names, and the row that all of its rows are made from. */
interface Columns {
  names: string[]
  empty: NamedRow
}

const NO_COLUMNS: Columns = { names: [], empty: {} }

/** By the names of statements. What a prepared statement answers cannot change: PostgreSQL would refuse to run it. */
type Known = Map<string, Columns>
const known = new WeakMap<pg.ClientBase, Known>()

function columnsOf(client: pg.ClientBase): Known {
  const columns = known.get(client) ?? new Map()
  known.set(client, columns)
  return columns
}

/** The values of a row, as pg's parser reads them. */
interface DataRow {
  fields: (string | null)[]
}

class NamedQuery extends Prepared {
  declare readonly name: string
  readonly found: NamedRow[] = []
  readonly #known: Known
  #columns: Columns | undefined

  constructor(statement: Statement & { name: string }, values: readonly Param[], known: Known) {
    super(statement, values)
    this.#known = known
    this.#columns = known.get(statement.name)
  }

  override get asksForColumns(): boolean {
    return this.#columns === undefined
  }

  // What follows is called by pg.

  handleRowDescription({ fields }: { fields: { name: string }[] }): void {
    const names = fields.map(({ name }) => name)
    this.#columns = { names, empty: Object.fromEntries(names.map((name) => [name, null])) }
  }

  handleDataRow({ fields }: DataRow): void {
    const { names, empty } = this.#columns!
    const row = { ...empty }
    for (let n = 0; n < names.length; n += 1) row[names[n]!] = fields[n]!
    this.found.push(row)
  }

  override handleCommandComplete(): void {
    if (!this.#known.has(this.name)) this.#known.set(this.name, this.#columns ?? NO_COLUMNS)
  }
}

class ArrayQuery extends Prepared {
  readonly found: (string | null)[][] = []

  // Called by pg for each row.
  handleDataRow({ fields }: DataRow): void {
    this.found.push(fields)
  }
}
