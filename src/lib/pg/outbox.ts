// Sends the reads of one turn of the event loop in batches: one system call for all of them, and one answer for each batch.
import type pg from 'pg'
import { sqlState } from './errors.ts'
import { answer, Batch, Prepared, wireOf } from './protocol.ts'
import type { Row, TakeRow } from './row-bytes.ts'
import type { Param, Statement } from './types.ts'

/** Asks for rows on a pipelined client, together with what else is asked there in this turn. */
export type Ask = (
  client: pg.ClientBase,
  statement: Statement,
  params: readonly Param[],
  take?: TakeRow,
) => Promise<Row[]>

// A read is answered when the last one of its batch is done, so that a batch is short.
export const MOST_IN_BATCH = 8

/** What will be sent on a client: the batches, and the one that others may join. */
interface Growing {
  batches: Batch[]
  open: Batch | undefined
}

/**
 * PostgreSQL does a batch in one transaction, one statement after the other, and skips those behind one that fails. Reads
 * that were skipped are sent again. A read of many rows would keep the others waiting, and one that changes something
 * holds locks to the end of its transaction, and is committed there: each of these has a batch of its own.
 */
export function openOutbox(): Ask {
  const growing = new Map<pg.ClientBase, Growing>()

  function growingAt(client: pg.ClientBase): Growing {
    const known = growing.get(client)
    if (known) return known
    const begun: Growing = { batches: [], open: undefined }
    growing.set(client, begun)
    // When all requests at hand have been read.
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
    const joins = open !== undefined && !query.isAlone && open.size < MOST_IN_BATCH
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

/** A query that hands on its rows as they come, and does not ask what its columns are called. */
class RowQuery extends Prepared {
  /** The rows, unless somebody takes them as they come. */
  readonly rows: Row[] = []
  /** Why a row could not be taken, if one could not. */
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
   * Whether it failed only because its name is prepared, or not, other than was noted: what was to prepare it has been
   * skipped, or was sent twice for that reason. From here on it goes without a name, which cannot fail so again.
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
/** By the names of statements, which are many times fewer than their uses. */
const changing = new Map<string, boolean>()

/** Whether one of these words is in its text. */
function mayChange({ name, text }: Statement): boolean {
  if (name === undefined) return CHANGE.test(text)
  const known = changing.get(name) ?? CHANGE.test(text)
  changing.set(name, known)
  return known
}
