// The embedded PostgreSQL: made in DATA_DIR, started, shared by every program there, and stopped by the last one to leave.
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { checkVersion, DATABASE, makeCluster, SUPERUSER } from './cluster.ts'
import { type Home, openHome, PORT } from './home.ts'
import { fileSentence, noAnswer, outputSentence, wrongPassword } from './sentences.ts'
import { isServerOf, lastServer, type Starting, startServer, stopServer, trimLog } from './server.ts'

export interface Embedded {
  /** For `pg`, and for psql by root or the user that runs Tundish. It holds the password. */
  url: string
  connection: { host: string; port: number; user: string; password: string; database: string; ssl: false }
  /** Where the database is, when that is not in DATA_DIR; to be shown. */
  notice?: string
  /** Leaves; stops the server when nobody else is there. Close your own connections first. May be called again. */
  close(): Promise<void>
}

export interface EmbeddedOptions {
  dataDir: string
  log: { info(message: string): void; warn(message: string): void }
  /** For tests: nothing has to survive a crash of the machine. Counts when the database is made. */
  throwaway?: boolean
  /** Called when PostgreSQL has to be started: what can be done while it comes up. */
  meanwhile?: (() => void) | undefined
}

// Who shares a server holds this lock, shared, on a connection of its own; who wants to stop it needs it alone. The kernel
// ends the connection of a program that is killed, and PostgreSQL its lock: no list of programs can be out of date.
const PRESENCE = [0x74756e64, 1]

const POLL_MS = 10
// A server that neither comes up nor says that it is busy recovering; and one that does say so.
const PATIENCE_MS = 15_000
const LONGEST_RECOVERY_MS = 30 * 60_000
const TELL_AFTER_MS = 2_000
const REJOIN_MS = 1_000
const TRIM_LOG_MS = 60 * 60_000

/** Joins the server of `dataDir`, or makes the database and starts it. Throws a `UsageError` when that cannot be. */
export async function openEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const { dataDir, log } = options
  try {
    const home = await openHome(dataDir)
    checkVersion(home)
    const joinServer = () => join(home, options)
    const presence = await joinServer()
    const { host } = presence
    const { password, notice } = home
    const connection = { host, port: PORT, user: SUPERUSER, password, database: DATABASE, ssl: false as const }
    return { url: urlOf(connection), connection, notice, close: keepPresence(home, presence, joinServer, log) }
  } catch (error) {
    throw fileSentence(error, dataDir)
  }
}

function urlOf({ host, port, user, password, database }: Embedded['connection']): string {
  const parameters = `host=${encodeURIComponent(host)}&port=${port}&sslmode=disable`
  // The parameter wins over the name before it, which stands there because a URL without one is none for `new URL`.
  return `postgresql://${user}:${password}@localhost/${database}?${parameters}`
}

/** Tries until it holds the presence lock: the server may be absent, starting, recovering or about to stop. */
async function join(home: Home, { log, throwaway = false, meanwhile }: EmbeddedOptions): Promise<pg.Client> {
  const begun = performance.now()
  let patientUntil = begun + PATIENCE_MS
  let starting: Starting | undefined
  let problem = 'nothing listens'
  let told = false
  while (performance.now() < Math.min(patientUntil, begun + LONGEST_RECOVERY_MS)) {
    const server = lastServer(home.cluster)
    if (server?.sockets) {
      const found = await enter(home, server.sockets)
      if (found instanceof pg.Client) return found
      if (found.busy) patientUntil = performance.now() + PATIENCE_MS
      if (found.busy && !told && performance.now() - begun > TELL_AFTER_MS) {
        log.info(`Waiting for PostgreSQL: ${found.problem}.`)
        told = true
      }
      problem = found.problem
    }
    if (starting?.end) {
      refuseFailure(starting.end, home)
      starting = undefined
    }
    if (!starting && !(server && (await isServerOf(home.cluster, server.pid)))) {
      starting = await makeAndStart(home, log, throwaway)
      meanwhile?.()
    }
    await sleep(POLL_MS)
  }
  throw noAnswer(home, problem, lastServer(home.cluster)?.pid)
}

/** Connects and takes the presence lock; or says why not, and whether the server asked for patience. */
async function enter(home: Home, host: string): Promise<pg.Client | { busy: boolean; problem: string }> {
  const client = new pg.Client({
    host,
    port: PORT,
    user: SUPERUSER,
    password: home.password,
    database: 'postgres',
    application_name: 'tundish presence',
    ssl: false,
  })
  // The end of a connection is an event too, which nobody else listens to; without this it would end the program.
  client.on('error', () => {})
  try {
    await client.connect()
    // Waits while the last one to leave stops the server, and fails when it has.
    await client.query('select pg_advisory_lock_shared($1, $2)', PRESENCE)
    return client
  } catch (error) {
    void client.end().catch(() => {})
    const { code, message } = error as NodeJS.ErrnoException
    if (code === '28P01') throw wrongPassword(home.dataDir)
    if (code === 'EACCES') throw error
    // 57P03, 57P01, 57P02: it is starting up, shutting down, or recovering from a crash.
    return { busy: code?.startsWith('57P') ?? false, problem: message }
  }
}

/** Another program's server may have been first, or the last one's processes are still ending: then we try again. */
function refuseFailure({ code, output }: NonNullable<Starting['end']>, home: Home): void {
  if (code === 0 || /\block file\b|shared memory block .* still in use/.test(output)) return
  throw outputSentence(output, 'start', home)
}

async function makeAndStart(home: Home, log: EmbeddedOptions['log'], throwaway: boolean): Promise<Starting> {
  const say = (what: string) => log.info(what)
  if (!existsSync(home.cluster)) await makeCluster(home, throwaway, say)
  return await startServer(home, say)
}

/** Stays present until the function returned is called: joins again, and starts the server, when it was lost. */
function keepPresence(home: Home, first: pg.Client, joinServer: () => Promise<pg.Client>, log: EmbeddedOptions['log']) {
  let leaving: Promise<void> | undefined
  let presence: Promise<pg.Client | undefined> = Promise.resolve(first)

  const watch = (client: pg.Client) => {
    client.once('end', () => {
      if (!leaving) presence = rejoin()
    })
  }
  const rejoin = async () => {
    log.warn('The embedded PostgreSQL ended our connection; joining it again.')
    while (!leaving) {
      try {
        const client = await joinServer()
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

/** Of several that leave at once, the lock goes to one at most, and never while somebody stays or has just come. */
async function isLast(client: pg.Client): Promise<boolean> {
  try {
    await client.query('select pg_advisory_unlock_shared($1, $2)', PRESENCE)
    const { rows } = await client.query('select pg_try_advisory_lock($1, $2) as alone', PRESENCE)
    return rows[0].alone
  } catch {
    // The server is gone already: whoever had the lock was faster, or it died.
    return false
  }
}
