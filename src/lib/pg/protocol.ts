// The undocumented internals of pg that this program depends on: how a query is sent and how it receives its result.
import type { EventEmitter } from 'node:events'
import type { Writable } from 'node:stream'
import pg from 'pg'
import type { Param, Statement } from './types.ts'

/** The part of pg's connection that queries use. */
export interface Wire extends EventEmitter {
  stream: Writable & { localPort?: number }
  attachListeners(stream: EventEmitter): void
  parse(statement: { name: string | undefined; text: string }): void
  bind(bound: {
    statement: string | undefined
    values: readonly Param[]
    valueMapper: (value: unknown) => unknown
  }): void
  describe(target: { type: 'P'; name: string }): void
  execute(portal: { rows: number }): void
  sync(): void
  sendCopyFail(why: string): void
  /** The texts of prepared statements, by name. */
  parsedStatements: Record<string, string>
  /** The same for statements whose preparation was sent and is not confirmed yet. */
  submittedNamedStatements: Record<string, string>
}

export const wireOf = (client: pg.ClientBase) => (client as unknown as { connection: Wire }).connection

const { prepareValue } = (pg as unknown as { utils: { prepareValue(value: unknown): unknown } }).utils

/** A statement with its parameters, as a part of a `Batch`. With a name it is prepared once on each connection. */
export abstract class Prepared {
  name: string | undefined
  readonly text: string
  readonly values: readonly Param[]
  /** 0 for all. */
  readonly maxRows: number
  /** Called when the statement is done; with its error if it failed. */
  callback!: (error: Error | null) => void

  constructor({ name, text, maxRows = 0 }: Statement, values: readonly Param[]) {
    this.maxRows = maxRows
    this.name = name
    this.text = text
    this.values = values
  }

  /** Whether it requests the column names. */
  get needsColumnNames(): boolean {
    return false
  }

  /** Sends the statement without the sync that makes PostgreSQL respond. */
  send(connection: Wire): void {
    const { name, text } = this
    if (!isPrepared(connection, name, text)) {
      connection.parse({ name, text })
      if (name !== undefined) connection.submittedNamedStatements[name] = text
    }
    connection.bind({ statement: name, values: this.values, valueMapper: prepareValue })
    if (this.needsColumnNames) connection.describe({ type: 'P', name: '' })
    connection.execute({ rows: this.maxRows })
  }

  /** Called instead of `callback` if the statement was skipped because an earlier one of its batch failed. */
  skipped(error: Error): void {
    this.callback(error)
  }

  handleRowDescription(_message: never): void {}

  handleDataRow(_message: never): void {}

  handleCommandComplete(_message: { text: string }): void {}
}

/** Whether this name is prepared on the connection, or its preparation was sent. A name always stands for the same text. */
function isPrepared(connection: Wire, name: string | undefined, text: string): boolean {
  if (name === undefined) return false
  const known = connection.parsedStatements[name] ?? connection.submittedNamedStatements[name]
  if (known !== undefined && known !== text) throw new Error(`Bug: "${name}" is prepared for another statement.`)
  return known !== undefined
}

/**
 * Statements that are sent together and followed by one sync. PostgreSQL runs them in order, responds to all of them at once,
 * and skips the rest after one that fails. For pg the batch is one query.
 */
export class Batch extends pg.Query {
  // The name and text of the statement whose response is being read: pg records prepared statements by them.
  declare name: string | undefined
  declare text: string
  readonly #queries: Prepared[] = []
  #done = 0

  constructor() {
    super('')
  }

  /** The number of statements. */
  get size(): number {
    return this.#queries.length
  }

  /** Adds a statement before the batch is sent. */
  add(query: Prepared): void {
    this.#queries.push(query)
  }

  /** Sends the batch: at once on a pipelined client, else after the responses to everything sent before. */
  send(client: pg.ClientBase): void {
    client.query(this)
  }

  get #current(): Prepared {
    return this.#queries[this.#done]!
  }

  #showCurrent(): void {
    this.name = this.#current?.name
    this.text = this.#current?.text ?? ''
  }

  // The following methods are called by pg.

  requiresPreparation(): boolean {
    return true
  }

  prepare(connection: Wire): void {
    let sent = 0
    try {
      for (; sent < this.#queries.length; sent += 1) this.#queries[sent]!.send(connection)
    } catch (error) {
      // A value that cannot be serialized: the queries after it were not sent.
      fail(this.#queries.splice(sent), error as Error)
    }
    connection.sync()
    this.#showCurrent()
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

  // Called when the limit of rows is reached.
  handlePortalSuspended(): void {
    this.handleCommandComplete({ text: '' })
  }

  handleCopyInResponse(connection: Wire): void {
    connection.sendCopyFail('COPY is not supported here.')
  }

  handleCopyData(): void {}

  handleError(error: Error, connection: Wire): void {
    // If all statements were done, the sync failed: outside a transaction that is the commit, so the last statement failed.
    const undone = this.#queries.splice(Math.min(this.#done, this.#queries.length - 1))
    for (const { name } of undone) if (name !== undefined) delete connection.submittedNamedStatements[name]
    this.handleReadyForQuery()
    fail(undone, error)
  }

  /** Called at the end of PostgreSQL's response. */
  handleReadyForQuery(): void {
    for (const { callback } of this.#queries.splice(0)) callback(null)
  }
}

/** Ends the first statement with the error, and the others as skipped. */
function fail([failed, ...skipped]: Prepared[], error: Error): void {
  failed?.callback(error)
  for (const query of skipped) query.skipped(error)
}

/** Sends a statement in a separate batch; resolves with it when it is done. */
export function run<Q extends Prepared>(client: pg.ClientBase, query: Q): Promise<Q> {
  return callPg((done) => {
    // Not assigned as a literal, see `callPg`.
    const callback = (error: Error | null) => done(error, query)
    query.callback = callback
    const batch = new Batch()
    batch.add(query)
    batch.send(client)
  })
}

/**
 * Returns the result of a call to pg, or throws its error with the caller's stack, because the stack of the socket's event
 * is useless. pg must not create the promise: it assigns a function literal to a property of each query, which V8 allocates
 * in the old generation. There the function keeps the query, and everything it references, until the next major collection.
 */
export async function callPg<T>(call: (done: (error: Error | null, result: T) => void) => void): Promise<T> {
  try {
    return await new Promise((resolve, reject) => {
      call((error, result) => (error ? reject(error) : resolve(result)))
    })
  } catch (error) {
    Error.captureStackTrace(error as Error, callPg)
    throw error
  }
}
