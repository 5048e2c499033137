// One connection without timeouts for a backup or a restore, to the embedded database or to DATABASE_URL.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import type { Config } from '../../config.ts'
import { openEmbedded } from '../../lib/embedded/embedded.ts'
import { Refusal } from '../../lib/errors.ts'
import { type Db, openDb } from '../../lib/pg/db.ts'
import { causeOf, isUnavailable, sqlState } from '../../lib/pg/errors.ts'
import { migrate } from '../../lib/pg/migrate.ts'
import { reachable } from '../../lib/pg/reachable.ts'
import { endWithClient } from '../../lib/pg/stalled.ts'
import type { Query } from '../../lib/pg/types.ts'

export interface Session {
  /** With the password. */
  url: string
  client: pg.PoolClient
  query: Query
  db: Db
}

export interface SessionOptions {
  config: Config
  name: 'tundish backup' | 'tundish restore' | 'tundish upgrade'
  /** Aborting it breaks the connection: the server rolls back. */
  signal: AbortSignal
  /** Creates the embedded database and its tables if they do not exist. */
  create?: boolean
}

/** Whether the last step was committed is unknown. */
export class InDoubt extends Refusal {}

/** Opens, works and closes; an interruption by the server or the user becomes a sentence. */
export async function withSession<T>(options: SessionOptions, work: (session: Session) => Promise<T>): Promise<T> {
  try {
    return await opened(options, work)
  } catch (error) {
    if (error instanceof InDoubt) throw error
    if (options.signal.aborted) throw new Refusal('Interrupted: nothing was changed.')
    const gone = isUnavailable(error) || sqlState(error) === '42501'
    // PostgreSQL's messages of these errors contain no data.
    throw gone ? new Refusal(`PostgreSQL ended it (${causeOf(error)}): nothing was changed.`) : error
  }
}

async function opened<T>(
  { config, name, signal, create = false }: SessionOptions,
  work: (session: Session) => Promise<T>,
) {
  const { dataDir } = config
  const databaseUrl = config.directDatabaseUrl ?? config.databaseUrl
  if (!databaseUrl && !create && !existsSync(join(dataDir, 'postgres')))
    throw new Refusal(`There is no database in ${dataDir}: set DATA_DIR or DATABASE_URL as for the server.`)
  const embedded = databaseUrl ? undefined : await openEmbedded({ dataDir, log: QUIET, signal })
  const url = embedded?.url ?? databaseUrl!
  const db = openDb({ url, applicationName: name, connections: 1, readConnections: 1 })
  try {
    if (create) await (embedded ? migrate(url) : reachable(migrate(url)))
    return await connected(db, signal, ({ client, query }) => work({ url, db, client, query }))
  } finally {
    await db.close()
    await embedded?.close()
  }
}

async function connected<T>(
  db: Db,
  signal: AbortSignal,
  work: (connection: Pick<Session, 'client' | 'query'>) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted()
  const { client, query, release } = await reachable(db.connect())
  let released = false
  const breakOff = () => {
    if (!released) release(true)
    released = true
  }
  signal.addEventListener('abort', breakOff, { once: true })
  try {
    for (const setting of SETTINGS) await query(setting)
    await endWithClient(query)
    return await work({ client, query })
  } finally {
    signal.removeEventListener('abort', breakOff)
    // The connection is destroyed, so that no transaction stays open.
    breakOff()
  }
}

// A large database takes long, and the text of a value must not depend on the server's settings.
const SETTINGS = [
  'set statement_timeout = 0',
  'set idle_in_transaction_session_timeout = 0',
  `set client_encoding = 'UTF8'`,
  `set intervalstyle = 'postgres'`,
  `set bytea_output = 'hex'`,
  'set extra_float_digits = 1',
  'set row_security = off',
]

const QUIET = { info() {}, warn: (text: string) => void process.stderr.write(`${text}\n`) }
