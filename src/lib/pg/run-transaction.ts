// One transaction on one connection: begin, the statements, commit, or rollback; and the retry after a deadlock.
import { isClash, isReadOnly, sqlState } from './errors.ts'
import type { Send } from './transactions.ts'
import type { NamedRow, Param, Query, Statement } from './types.ts'

/**
 * Sends the commit after the statements sent so far. If one of them fails, nothing is committed, and `work` must throw its
 * error, or roll back to a savepoint and commit again. After this call `work` must not fail for any other reason.
 */
export type Commit = () => void

export type Work<T> = (query: Query, commit: Commit) => Promise<T>

export type Outcome<T> =
  | { kind: 'committed'; result: T }
  | { kind: 'failed'; error: unknown; isConnectionBroken: boolean }

const TRIES = 3
// The error of a statement that was sent after one that failed.
const AFTER_A_FAILURE = '25P02'

// Named, so that each is prepared once on a connection.
const BEGIN: Statement = { name: 'begin', text: 'begin' }
const COMMIT: Statement = { name: 'commit', text: 'commit' }
const ROLLBACK: Statement = { name: 'rollback', text: 'rollback' }

/** Runs `work` again after a deadlock or a serialization failure, at most three times in all. */
export async function retryClashes<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work()
    } catch (error) {
      if (attempt === TRIES || !isClash(error)) throw error
    }
  }
}

/** Commits what `work` did, or rolls it back when it throws. Never rejects. */
export async function runTransaction<T>(send: Send, work: Work<T>): Promise<Outcome<T>> {
  let failed: unknown
  const query = async <R extends NamedRow>(given: string | Statement, params: readonly Param[] = []) => {
    try {
      return (await send(asStatement(given), params)).rows as R[]
    } catch (error) {
      if (sqlState(error) !== AFTER_A_FAILURE) failed = error
      throw error
    }
  }
  const commit = commitOf(send)
  try {
    const begun = query(BEGIN)
    // Sent together with the first statement, which fails with it.
    begun.catch(ignore)
    const result = await work(query, commit.send)
    await begun
    await commit.done()
    return { kind: 'committed', result }
  } catch (error) {
    let isConnectionBroken = isReadOnly(error)
    // A failure of the rollback must not hide the error that led to it.
    await query(ROLLBACK).catch(() => {
      isConnectionBroken = true
    })
    return {
      kind: 'failed',
      error: sqlState(error) === AFTER_A_FAILURE ? (failed ?? error) : error,
      isConnectionBroken,
    }
  }
}

/** `send` sends the commit, and sends it again only after a failed one. `done` waits for it, and sends it if necessary. */
function commitOf(send: Send): { send: Commit; done(): Promise<void> } {
  let committed: Promise<void> | undefined
  let hasFailed = false
  const commit = () => {
    if (committed && !hasFailed) return
    hasFailed = false
    committed = commitWith(send)
    // `done` throws the error, unless `work` rolls back to a savepoint and commits again.
    committed.catch(() => {
      hasFailed = true
    })
  }
  return {
    send: commit,
    async done() {
      if (!committed) commit()
      await committed
    },
  }
}

async function commitWith(send: Send): Promise<void> {
  const { commandTag } = await send(COMMIT, [])
  // After a failed statement PostgreSQL rolls back, and the command tag is ROLLBACK instead of an error.
  if (commandTag !== 'COMMIT')
    throw new Error(`Bug: a transaction in which a statement failed ended with ${commandTag}`)
}

export const asStatement = (given: string | Statement): Statement =>
  typeof given === 'string' ? { text: given } : given

function ignore(): undefined {}
