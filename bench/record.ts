// What one request of ours asks the database, so that pgbench can ask the very same.
import type { Config } from '../src/config.ts'
import type { Db } from '../src/lib/pg/db.ts'
import type { Query } from '../src/lib/pg/types.ts'
import { publicListener } from '../src/server/server.ts'
import type { Rig } from './rig.ts'
import type { Recorded } from './tools.ts'

type Note = (text: string, params: Recorded['params'], name?: string) => void

/** A database of which each statement is noted, and where its transactions begin and end. */
export function noting(db: Db, note: Note): Db {
  const watched =
    (query: Query): Query =>
    (statement, params = []) => {
      const { text, name } = typeof statement === 'string' ? { text: statement, name: undefined } : statement
      note(text, params, name)
      return query(statement, params)
    }
  const reading =
    (read: Db['read']): Db['read'] =>
    (statement, params, take) => {
      note(statement.text, params, statement.name)
      return read(statement, params, take)
    }
  return {
    ...db,
    query: watched(db.query),
    read: reading(db.read),
    readLong: reading(db.readLong),
    tx: async (work) => {
      note('begin', [])
      const result = await db.tx((query, commit) => work(watched(query), commit))
      note('commit', [])
      return result
    },
  }
}

export interface Call {
  method?: 'GET' | 'POST'
  path: string
  headers: Record<string, string>
  body?: object
}

/**
 * The statements of one request with their parameters, and its answer. The look-up of the key, once a second, is left out.
 * Asks twice, for what is kept for a second is there the second time, as it is under load; `once` is for what changes things.
 */
export async function record({ app }: Rig, { method = 'GET', path, headers, body }: Call, { once = false } = {}) {
  let statements: Recorded[] = []
  const note: Note = (text, params, name) => {
    if (name !== 'find key') statements.push({ text, params })
  }
  const db = noting(app.db, note)
  // Injected requests have no header names of their own case.
  const config: Config = { ...app.config, secretHeaderCase: 'any' }
  const listener = await publicListener({ ...app, config, db })
  const ask = () => listener.inject({ method, url: path, headers, ...(body && { payload: body }) })
  if (!once) await ask()
  statements = []
  const answer = await ask()
  await listener.close()
  if (answer.statusCode !== 200) throw new Error(`${path} answered ${answer.statusCode}: ${answer.body}`)
  return { statements, body: answer.body }
}
