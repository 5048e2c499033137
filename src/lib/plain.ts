// Plain connections, for transactions and whatever takes its time: rows by the names of their columns.
import type pg from 'pg'
import type { NamedRow, Param, Statement } from './db.ts'
import { answer, Prepared } from './pg-inside.ts'
import { streamOf } from './watch.ts'

/** Holds back what is written to this connection until it is time: one system call for many statements. */
export function holdBack(client: pg.ClientBase, whenItIsTime: (send: () => void) => void): void {
  const stream = streamOf(client)
  if (stream.writableCorked > 0) return
  stream.cork()
  whenItIsTime(() => stream.uncork())
}

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
  if (name === undefined) return (await askPg<NamedRow>(client, { text, values: given(params) })).rows
  send(client)
  const known = columnsOf(client)
  const query = await answer<NamedQuery>((done) => {
    const query = new NamedQuery({ name, text }, params, known, (error) => done(error, query))
    client.query(query)
  })
  return query.found
}

/** The rows of a statement as arrays. */
export async function askForArrays(
  client: pg.ClientBase,
  { name, text }: Statement,
  params: readonly Param[],
): Promise<(string | null)[][]> {
  const query = { ...(name !== undefined && { name }), text, values: given(params), rowMode: 'array' as const }
  return (await askPg<(string | null)[]>(client, query)).rows
}

/** Runs a command, and answers what PostgreSQL says that it did. */
export async function command(client: pg.ClientBase, text: string): Promise<string> {
  return (await askPg(client, { text })).command
}

function askPg<R extends pg.QueryResultRow>(client: pg.ClientBase, query: pg.QueryConfig) {
  send(client)
  return answer<pg.QueryResult<R>>((done) => client.query<R>(query, done))
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

class NamedQuery extends Prepared {
  declare readonly name: string
  readonly found: NamedRow[] = []
  readonly #known: Known
  #columns: Columns
  override readonly asksForColumns: boolean

  constructor(
    statement: Statement & { name: string },
    values: readonly Param[],
    known: Known,
    callback: (error: Error | null) => void,
  ) {
    super(statement, values, callback)
    const columns = known.get(statement.name)
    this.#known = known
    this.#columns = columns ?? NO_COLUMNS
    this.asksForColumns = columns === undefined
  }

  // What follows is called by pg.

  handleRowDescription({ fields }: { fields: { name: string }[] }): void {
    const names = fields.map(({ name }) => name)
    this.#columns = { names, empty: Object.fromEntries(names.map((name) => [name, null])) }
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    const { names, empty } = this.#columns
    const row = { ...empty }
    for (let n = 0; n < names.length; n += 1) row[names[n]!] = fields[n]!
    this.found.push(row)
  }

  override handleCommandComplete(): void {
    if (this.asksForColumns) this.#known.set(this.name, this.#columns)
  }
}
