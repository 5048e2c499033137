// Sends the reads of one turn of the event loop in batches: one system call for all, and one response for each batch.
import type pg from 'pg'
import { sqlState } from './errors.ts'
import { Batch, callPg, Prepared, wireOf } from './protocol.ts'
import type { Row, TakeRow } from './row-bytes.ts'
import type { Param, Statement } from './types.ts'

/** Sends a read on a pipelined client, together with the other reads of this turn of the event loop. */
export type SendRead = (
  client: pg.ClientBase,
  statement: Statement,
  params: readonly Param[],
  take?: TakeRow,
) => Promise<Row[]>

// The result of a read arrives when the whole batch is done, so a batch must be short.
export const MAX_IN_BATCH = 8

/** The batches to be sent on a client. Further reads may join the open one, which is the last. */
interface Outgoing {
  batches: Batch[]
  open: Batch | undefined
}

/**
 * PostgreSQL runs a batch in one transaction, one statement after the other. If one fails, it skips the following ones,
 * which are then sent again. A read of many rows has a separate batch, because it would delay the others. So does a
 * statement that writes, because it holds its locks until the end of the batch.
 */
export function openOutbox(): SendRead {
  const outgoing = new Map<pg.ClientBase, Outgoing>()

  function outgoingOf(client: pg.ClientBase): Outgoing {
    const known = outgoing.get(client)
    if (known) return known
    const created: Outgoing = { batches: [], open: undefined }
    outgoing.set(client, created)
    // Runs after all requests that have arrived were read.
    setImmediate(() => {
      outgoing.delete(client)
      const { stream } = wireOf(client)
      stream.cork()
      for (const batch of created.batches) batch.send(client)
      stream.uncork()
    })
    return created
  }

  function enqueue(client: pg.ClientBase, query: RowQuery): void {
    const target = outgoingOf(client)
    if (target.open && !query.isAlone && target.open.size < MAX_IN_BATCH) {
      target.open.add(query)
      return
    }
    const batch = new Batch()
    batch.add(query)
    target.batches.push(batch)
    target.open = query.isAlone ? undefined : batch
  }

  return (client, statement, params, take) =>
    callPg((done) => {
      const query = new RowQuery(statement, params, take)
      const again = () => enqueue(client, query)
      // Not assigned as literals, see `callPg`.
      const callback = (error: Error | null) => {
        if (error && query.prepareForRetry(error, client)) again()
        else done(error ?? query.failure ?? null, query.rows)
      }
      query.callback = callback
      query.again = again
      again()
    })
}

const NOT_PREPARED = '26000'
const PREPARED_ALREADY = '42P05'

/** A query that passes on its rows as they arrive, and does not request the names of its columns. */
class RowQuery extends Prepared {
  /** The rows, unless the caller takes them as they arrive. */
  readonly rows: Row[] = []
  /** The error thrown by the caller's function for a row. */
  failure: Error | undefined
  /** Whether it has a separate batch. */
  readonly isAlone: boolean
  /** Sends it again. */
  again!: () => void
  readonly #take: TakeRow | undefined

  constructor(statement: Statement, values: readonly Param[], take: TakeRow | undefined) {
    super(statement, values)
    this.isAlone = statement.large === true || mayChange(statement)
    this.#take = take
  }

  /**
   * Returns whether it failed only because pg's record of prepared names was wrong: the statement that should have prepared
   * the name was skipped, or was sent twice because of that. Then the record is corrected, and the name removed from this
   * query, so that it cannot fail in this way again.
   */
  prepareForRetry(error: Error, client: pg.ClientBase): boolean {
    const state = sqlState(error)
    const { name, text } = this
    if (name === undefined || (state !== NOT_PREPARED && state !== PREPARED_ALREADY)) return false
    const { parsedStatements } = wireOf(client)
    if (state === PREPARED_ALREADY) parsedStatements[name] = text
    else delete parsedStatements[name]
    this.name = undefined
    return true
  }

  override skipped(): void {
    this.again()
  }

  override handleDataRow(row: Row): void {
    if (this.failure) return
    try {
      if (this.#take) this.#take(row)
      else this.rows.push(row.copy())
    } catch (error) {
      this.failure = error as Error
    }
  }
}

const CHANGE = /\b(?:insert|update|delete|merge)\b/i
/** Cached by the name of the statement. */
const changing = new Map<string, boolean>()

/** Whether the text contains a word of a statement that writes. */
function mayChange({ name, text }: Statement): boolean {
  if (name === undefined) return CHANGE.test(text)
  const known = changing.get(name) ?? CHANGE.test(text)
  changing.set(name, known)
  return known
}
