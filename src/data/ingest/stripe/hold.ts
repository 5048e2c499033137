// Only one process at a time runs an import from Stripe: it holds a lock of the database.
import type { App } from '../../../app.ts'
import { Refusal } from '../../../lib/errors.ts'
import type { Query } from '../../../lib/pg/types.ts'
import { releaseTurn, tryTurn, tryTurnInTransaction } from '../turn.ts'
import { type ImportName, keyOf } from './state.ts'

const turnOf = (name: ImportName) => JSON.stringify(keyOf(name))

/** A connection that holds the import; its lock ends with the process, however that ends. */
export interface Held {
  /** For every statement on the state, so that nothing is saved once the connection and its lock are lost. */
  query: Query
  release(): Promise<void>
}

/** undefined if another process runs it. */
export async function holdImport(db: App['db'], name: ImportName): Promise<Held | undefined> {
  const connection = await db.connect()
  const { query } = connection
  const release = () => releaseTurn(connection)
  try {
    if (await tryTurn(query, turnOf(name))) return { query, release }
  } catch (error) {
    await release()
    throw error
  }
  await release()
  return undefined
}

/** Throws a `Refusal` while a process runs the import; blocks others until the transaction ends. */
export async function requireIdle(query: Query, name: ImportName): Promise<void> {
  if (!(await tryTurnInTransaction(query, turnOf(name)))) throw alreadyRunning()
}

export const alreadyRunning = () =>
  new Refusal('An import from this Stripe account into this project is running already: wait for it, or stop it first.')
