// The internals of pg that we depend on and its types do not show: how a query is sent, and how it receives the answer.
import type { EventEmitter } from 'node:events'
import type { Writable } from 'node:stream'
import pg from 'pg'
import type { Param, Statement } from './types.ts'

/** A connection as its queries see it. */
export interface Wire extends EventEmitter {
  stream: Writable
  attachListeners(stream: EventEmitter): void
  parse(statement: { name: string | undefined; text: string }): void
  bind(bound: {
    statement: string | undefined
    values: readonly Param[]
    valueMapper: (value: unknown) => unknown
  }): void
  describe(what: { type: 'P'; name: string }): void
  execute(portal: { rows: number }): void
  sync(): void
  sendCopyFail(why: string): void
  submittedNamedStatements: Record<string, string>
}

export const wireOf = (client: pg.ClientBase) => (client as unknown as { connection: Wire }).connection

/** Holds back what is written to this connection until the event loop comes round: one system call for many statements. */
export function holdBack(client: pg.ClientBase): void {
  const { stream } = wireOf(client)
  if (stream.writableCorked > 0) return
  stream.cork()
  setImmediate(() => stream.uncork())
}

const { prepareValue } = (pg as unknown as { utils: { prepareValue(value: unknown): unknown } }).utils

/** A query that is sent with its parameters at one go; with a name it is prepared once on its connection. */
export abstract class Prepared extends pg.Query {
  declare readonly text: string
  declare readonly hasBeenParsed: (connection: Wire) => boolean
  declare callback: (error: Error | null) => void
  readonly name: string | undefined
  readonly values: readonly Param[]
  /** It ends after so many rows; 0 is all. */
  readonly most: number
  /** Whether it is the one that prepares its name on its connection. */
  prepares = false

  constructor({ name, text, most = 0 }: Statement, values: readonly Param[]) {
    super(text)
    this.most = most
    this.name = name
    this.values = values
  }

  /** Whether it asks what its columns are called. */
  get asksForColumns(): boolean {
    return false
  }

  /** Sends all but the sync, at which PostgreSQL answers. */
  send(connection: Wire): void {
    if (!this.hasBeenParsed(connection)) {
      this.prepares = true
      connection.parse({ name: this.name, text: this.text })
      if (this.name !== undefined) connection.submittedNamedStatements[this.name] = this.text
    }
    connection.bind({ statement: this.name, values: this.values, valueMapper: prepareValue })
    if (this.asksForColumns) connection.describe({ type: 'P', name: '' })
    connection.execute({ rows: this.most })
  }

  // What follows is called by pg.

  requiresPreparation(): boolean {
    return true
  }

  prepare(connection: Wire): void {
    this.send(connection)
    connection.sync()
  }

  handleRowDescription(_message: never): void {}

  handleDataRow(_message: never): void {}

  handleCommandComplete(_message: { text: string }): void {}

  // As many rows as were wanted; the sync that was sent along ends the rest.
  handlePortalSuspended(): void {}
}

/**
 * Queries that are sent together with one sync behind them: PostgreSQL does one after the other, answers all at one go,
 * and skips those behind one that fails. They end together.
 */
export class Batch {
  name: string | undefined
  text: string | undefined
  readonly #queries: Prepared[] = []
  #done = 0

  /** Adds a query before the batch is sent; its callback is called when it is done, or with the error. */
  add(query: Prepared): void {
    this.#queries.push(query)
  }

  /** Sends it as soon as what was sent before is answered. */
  send(client: pg.ClientBase): void {
    client.query(this as unknown as pg.Submittable)
  }

  get #current(): Prepared {
    return this.#queries[this.#done]!
  }

  // What follows is called by pg, which takes the query that is being answered for the one that it has sent.

  submit(connection: Wire): null {
    connection.stream.cork()
    let sent = 0
    try {
      for (; sent < this.#queries.length; sent += 1) this.#queries[sent]!.send(connection)
    } catch (error) {
      // A value that cannot be written: what is behind it was not sent.
      for (const { callback } of this.#queries.splice(sent)) callback(error as Error)
    }
    connection.sync()
    connection.stream.uncork()
    this.#showCurrent()
    return null
  }

  #showCurrent(): void {
    this.name = this.#current?.name
    this.text = this.#current?.text
  }

  handleRowDescription(message: never): void {
    this.#current.handleRowDescription(message)
  }

  handleDataRow(message: never): void {
    this.#current.handleDataRow(message)
  }

  handleCommandComplete(message: { text: string }): void {
    this.#current.handleCommandComplete(message)
    this.#done += 1
    this.#showCurrent()
  }

  handleEmptyQuery(): void {
    this.handleCommandComplete({ text: '' })
  }

  handleCopyInResponse(connection: Wire): void {
    connection.sendCopyFail('Nothing is copied here.')
  }

  handleCopyData(): void {}

  handleError(error: Error, connection: Wire): void {
    const skipped = this.#queries.splice(this.#done)
    for (const { name } of skipped) if (name !== undefined) delete connection.submittedNamedStatements[name]
    this.handleReadyForQuery()
    for (const { callback } of skipped) callback(error)
  }

  /** PostgreSQL's end of the answer. */
  handleReadyForQuery(): void {
    for (const { callback } of this.#queries.splice(0)) callback(null)
  }
}

const NOT_PREPARED = '26000'
/** By the names of statements, why the last one failed that was to prepare it. */
const unprepared = new WeakMap<pg.ClientBase, Map<string, Error>>()

/**
 * Why a query failed. Those that are sent behind the one that prepares their name count on it: when it could not, for want
 * of a lock, say, PostgreSQL says of them only that nothing was prepared. They failed for the same reason.
 */
function reasonOf(client: pg.ClientBase, { name, prepares }: Prepared, error: Error): Error {
  if (name === undefined) return error
  const reasons = unprepared.get(client) ?? new Map<string, Error>()
  unprepared.set(client, reasons)
  if (prepares) reasons.set(name, error)
  return (error as { code?: unknown }).code === NOT_PREPARED ? (reasons.get(name) ?? error) : error
}

/** Sends a query, and answers it when all that it asks for has come. */
export function run<Q extends Prepared>(client: pg.ClientBase, query: Q): Promise<Q> {
  return answer((done) => {
    // Not assigned as a literal, see `answer`.
    const callback = (error: Error | null) => done(error && reasonOf(client, query, error), query)
    query.callback = callback
    client.query(query)
  })
}

/**
 * The answer to what is asked of pg, or its error with the stack of who asked: that of the socket tells nothing. pg must
 * not make the promise. It assigns a function literal to a property of each query, which V8 allocates among what it takes
 * to live long; there the function outlives its query, and all that the query has brought with it, to the next major
 * collection.
 */
export async function answer<T>(ask: (done: (error: Error | null, result: T) => void) => void): Promise<T> {
  try {
    return await new Promise((resolve, reject) => {
      ask((error, result) => (error ? reject(error) : resolve(result)))
    })
  } catch (error) {
    Error.captureStackTrace(error as Error, answer)
    throw error
  }
}
