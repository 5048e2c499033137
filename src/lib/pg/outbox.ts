// Sends the reads of one turn of the event loop in batches: one system call for all, and one response for each batch.
import type pg from 'pg'
import { sqlState } from './errors.ts'
import { answer, Batch, Prepared, wireOf } from './protocol.ts'
import type { Row, TakeRow } from './row-bytes.ts'
import type { Param, Statement } from './types.ts'

/** Sends a read on a pipelined client, together with the other reads of this turn of the event loop. */
export type Ask = (
  client: pg.ClientBase,
  statement: Statement,
  params: readonly Param[],
  take?: TakeRow,
) => Promise<Row[]>

// The result of a read arrives when the whole batch is done, so a batch must be short.
export const MAX_IN_BATCH = 8

/** The batches to be sent on a client, and the last one, which further reads may join. */
interface Growing {
  batches: Batch[]
  open: Batch | undefined
}

/**
 * PostgreSQL runs a batch in one transaction, one statement after the other. If one fails, it skips the following ones,
 * which are then sent again. A read of many rows has a batch of its own, because it would delay the others. So does a
 * statement that writes, because it holds its locks until the end of the batch.
 */
export function openOutbox(): Ask {
  const growing = new Map<pg.ClientBase, Growing>()

  function growingAt(client: pg.ClientBase): Growing {
    const known = growing.get(client)
    if (known) return known
    const begun: Growing = { batches: [], open: undefined }
    growing.set(client, begun)
    // Runs after all requests that have arrived were read.
    setImmediate(() => {
      growing.delete(client)
      const { stream } = wireOf(client)
      stream.cork()
      for (const batch of begun.batches) batch.send(client)
      stream.uncork()
    })
    return begun
  }

  function post(client: pg.ClientBase, query: RowQuery): void {
    const { batches, open } = growingAt(client)
    const joins = open !== undefined && !query.isAlone && open.size < MAX_IN_BATCH
    const batch = joins ? open : new Batch()
    batch.add(query)
    if (joins) return
    batches.push(batch)
    growing.get(client)!.open = query.isAlone ? undefined : batch
  }

  return (client, statement, params, take) =>
    answer((done) => {
      const query = new RowQuery(statement, params, take)
      const again = () => post(client, query)
      // Not assigned as literals, see `answer`.
      const callback = (error: Error | null) => {
        if (error && query.isPreparedOtherwise(error, client)) again()
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
  /** Whether it has a batch of its own. */
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
   * Whether it failed only because pg's record of prepared names was wrong: the statement that should have prepared the name
   * was skipped, or was sent twice because of that. It is sent again without a name, which cannot fail in this way.
   */
  isPreparedOtherwise(error: Error, client: pg.ClientBase): boolean {
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
      else this.rows.push(row.kept())
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
