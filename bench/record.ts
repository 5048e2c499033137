// Records the statements of one request, so that pgbench can send the same.
import type { Config } from '../src/config.ts'
import type { Db } from '../src/lib/pg/db.ts'
import type { Query } from '../src/lib/pg/types.ts'
import { publicListener } from '../src/server/server.ts'
import type { Rig } from './rig.ts'
import type { Recorded } from './tools.ts'

type Note = (text: string, params: Recorded['params'], name?: string) => void

/** A database that reports each statement, and where transactions begin and end. */
export function recording(db: Db, note: Note): Db {
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
 * The statements of one request with their parameters, and the body of its response, without the look-up of the key, which is
 * cached for a second. The request is sent twice and recorded the second time, when the caches are filled, as under load;
 * `once` is for requests that change data.
 */
export async function record({ app }: Rig, { method = 'GET', path, headers, body }: Call, { once = false } = {}) {
  let statements: Recorded[] = []
  const note: Note = (text, params, name) => {
    if (name !== 'find key') statements.push({ text, params })
  }
  const db = recording(app.db, note)
  // Injected requests lose the case of header names.
  const config: Config = { ...app.config, secretHeaderCase: 'any' }
  const listener = await publicListener({ ...app, config, db })
  const send = () => listener.inject({ method, url: path, headers, ...(body && { payload: body }) })
  if (!once) await send()
  statements = []
  const response = await send()
  await listener.close()
  if (response.statusCode !== 200) throw new Error(`${path} has the status ${response.statusCode}: ${response.body}`)
  return { statements, body: response.body }
}
