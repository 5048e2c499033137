// Records the statements of one request, so that pgbench can send the same.
import type { Config } from '../src/config.ts'
import type { Db } from '../src/lib/pg/db.ts'
import { publicListener } from '../src/server/listeners/server.ts'
import { watched } from '../test/support/plans.ts'
import type { Rig } from './rig.ts'
import type { Recorded } from './tools.ts'

/** A database that reports each statement, and where transactions begin and end. */
export function recording(db: Db, note: (text: string, params: Recorded['params'], name?: string) => void): Db {
  const recorded = watched(db, ({ text, params, name }) => note(text, params, name))
  return {
    ...recorded,
    tx: async (work) => {
      note('begin', [])
      const result = await recorded.tx(work)
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
  const db = recording(app.db, (text, params, name) => {
    if (name !== 'find key') statements.push({ text, params })
  })
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
