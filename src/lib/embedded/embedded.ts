// The embedded PostgreSQL: created in DATA_DIR, started, shared by all programs there, and stopped by the last one.
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { checkVersion, DATABASE, SUPERUSER } from './cluster.ts'
import { type Home, openHome, PORT } from './home.ts'
import { joinServer, PRESENCE } from './join.ts'
import { fileSentence } from './sentences.ts'
import { stopServer, trimLog } from './server.ts'

export interface Embedded {
  /** For `pg`, and for psql by root or the user that runs Tundish. It holds the password. */
  url: string
  connection: { host: string; port: number; user: string; password: string; database: string; ssl: false }
  /** A message with the place of the database, if that is not in DATA_DIR. */
  notice?: string
  /** Leaves; the last program to leave stops the server. Close your own connections first. May be called again. */
  close(): Promise<void>
}

export interface EmbeddedOptions {
  dataDir: string
  log: { info(message: string): void; warn(message: string): void }
  /** For tests: nothing has to survive a crash of the machine. Applies when the database is created. */
  throwaway?: boolean
  /** Called while PostgreSQL starts, for work that does not need it. */
  whileStarting?: (() => void) | undefined
  /** Aborts joining: a started server is stopped, and the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined
}

const REJOIN_MS = 1_000
const TRIM_LOG_MS = 60 * 60_000

/** Joins the server of `dataDir`, or creates the database and starts it. Throws a `UsageError` if that is impossible. */
export async function openEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const { dataDir } = options
  try {
    const home = await openHome(dataDir)
    checkVersion(home)
    const presence = await joinServer(home, options)
    const { host } = presence
    const { password, notice } = home
    const connection = { host, port: PORT, user: SUPERUSER, password, database: DATABASE, ssl: false as const }
    return { url: urlOf(connection), connection, notice, close: keepPresence(home, presence, options) }
  } catch (error) {
    throw fileSentence(error, dataDir)
  }
}

/** The address of a database on the server. */
export function urlOf({ host, port, user, password, database }: Embedded['connection']): string {
  const parameters = `host=${encodeURIComponent(host)}&port=${port}&sslmode=disable`
  // The parameter overrides the host name, which is there because `new URL` accepts no URL without one.
  return `postgresql://${user}:${password}@localhost/${database}?${parameters}`
}

/** Holds the presence lock until the returned function is called; joins again, and starts the server, if it is lost. */
function keepPresence(home: Home, first: pg.Client, { log, throwaway }: EmbeddedOptions) {
  let leaving: Promise<void> | undefined
  let presence: Promise<pg.Client | undefined> = Promise.resolve(first)

  const watch = (client: pg.Client) => {
    client.once('end', () => {
      if (!leaving) presence = rejoin()
    })
  }
  const rejoin = async () => {
    log.warn('The embedded PostgreSQL closed the connection; joining it again.')
    while (!leaving) {
      try {
        const client = await joinServer(home, { log, throwaway })
        watch(client)
        return client
      } catch (error) {
        log.warn((error as Error).message)
        await sleep(REJOIN_MS)
      }
    }
    return undefined
  }
  const trimming = setInterval(() => trimLog(home), TRIM_LOG_MS).unref()
  watch(first)

  return () => {
    leaving ??= presence.then(async (client) => {
      clearInterval(trimming)
      if (client) await leave(home, client, log)
    })
    return leaving
  }
}

async function leave({ cluster }: Home, client: pg.Client, log: EmbeddedOptions['log']): Promise<void> {
  if ((await isLast(client)) && !(await stopServer(cluster))) log.warn(`PostgreSQL on ${cluster} could not be stopped.`)
  await client.end()
}

/** Of several programs that leave at once at most one gets the lock, and none while another stays or has just joined. */
async function isLast(client: pg.Client): Promise<boolean> {
  try {
    await client.query('select pg_advisory_unlock_shared($1, $2)', PRESENCE)
    const { rows } = await client.query('select pg_try_advisory_lock($1, $2) as alone', PRESENCE)
    return rows[0].alone
  } catch {
    // The server has stopped already: another program stopped it first, or it crashed.
    return false
  }
}
