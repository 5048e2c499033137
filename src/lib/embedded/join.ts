// Joins the server of a data folder: waits for it, or creates the database and starts it, and takes the presence lock.
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { makeCluster, refuseWhileUpgrading, SUPERUSER } from './cluster.ts'
import { type Home, PORT } from './home.ts'
import { diskFull, noResponse, outputSentence, wrongPassword } from './sentences.ts'
import { giveUpServer, isServerOf, lastServer, type Starting, startServer } from './server.ts'

export interface JoinOptions {
  log: { info(message: string): void }
  throwaway?: boolean | undefined
  /** Called while PostgreSQL starts, for work that does not need it. */
  whileStarting?: (() => void) | undefined
  signal?: AbortSignal | undefined
}

/**
 * The advisory lock that every program on the server holds, shared, on a separate connection; a program may stop the
 * server only if it gets the lock exclusively. When a program is killed the kernel closes its connection and PostgreSQL
 * frees its lock, so unlike a list of programs this is never out of date.
 */
export const PRESENCE = [0x74756e64, 1]

const POLL_MS = 10
// How long a running server may neither accept a connection nor report that it is starting or recovering. Counted from
// the start of the server: creating the database takes as long as the machine is busy. With 0.4 % of a core it took 40 s.
const PATIENCE_MS = 120_000
const LONGEST_RECOVERY_MS = 30 * 60_000
const LOG_EVERY_MS = 5_000
const LOG_CHECK_MS = 250
const SLOW_ATTEMPT_MS = 1_000

/** A connection that holds the presence lock. Throws a `UsageError`; a server that this call started is then stopped. */
export async function joinServer(home: Home, options: JoinOptions): Promise<pg.Client> {
  const joining: Joining = { patience: newPatience(), problem: 'nothing listens', triedAtMs: 0, starting: undefined }
  // On a timer, because an attempt to connect lasts as long as the server is frozen.
  const logging = setInterval(() => joining.patience.logProgress(options.log, currentProblem(joining)), LOG_CHECK_MS)
  try {
    for (;;) {
      options.signal?.throwIfAborted()
      joining.triedAtMs = performance.now()
      const client = await tryToJoin(home, options, joining)
      if (client) return client
      if (joining.patience.isOver()) throw noResponse(home, joining.problem, othersServer(home, joining))
      await sleep(POLL_MS)
    }
  } catch (error) {
    if (joining.starting) await giveUpServer(joining.starting)
    throw error
  } finally {
    clearInterval(logging)
  }
}

/** A server started by another program, which must not be stopped here. */
const othersServer = ({ cluster }: Home, { starting }: Joining) => (starting ? undefined : lastServer(cluster)?.pid)

interface Joining {
  patience: Patience
  /** Why the last attempt failed. */
  problem: string
  /** When the last attempt began, on the monotonic clock. */
  triedAtMs: number
  starting: Starting | undefined
}

const currentProblem = ({ problem, triedAtMs }: Joining) =>
  performance.now() - triedAtMs < SLOW_ATTEMPT_MS ? problem : 'it does not respond'

async function tryToJoin(home: Home, options: JoinOptions, joining: Joining): Promise<pg.Client | undefined> {
  const server = lastServer(home.cluster)
  if (server?.sockets) {
    const found = await connect(home, server.sockets)
    if (found instanceof pg.Client) return found
    if (found.busy) joining.patience.extend()
    joining.problem = found.problem
  }
  if (joining.starting?.end) {
    refuseFailure(joining.starting.end, home)
    joining.starting = undefined
  }
  if (!joining.starting && !(server && (await isServerOf(home.cluster, server.pid)))) {
    joining.starting = await makeAndStart(home, options)
    joining.patience = newPatience()
    options.whileStarting?.()
  }
  return undefined
}

interface Patience {
  extend(): void
  isOver(): boolean
  /** Logs from time to time what is waited for. */
  logProgress(log: JoinOptions['log'], problem: string): void
}

function newPatience(): Patience {
  const begunMs = performance.now()
  let untilMs = begunMs + PATIENCE_MS
  let logMs = begunMs + LOG_EVERY_MS
  return {
    extend() {
      untilMs = Math.min(performance.now() + PATIENCE_MS, begunMs + LONGEST_RECOVERY_MS)
    },
    isOver: () => performance.now() > untilMs,
    logProgress(log, problem) {
      const nowMs = performance.now()
      if (nowMs < logMs) return
      log.info(`Still waiting for PostgreSQL after ${Math.round((nowMs - begunMs) / 1000)} s: ${problem}.`)
      logMs = nowMs + LOG_EVERY_MS
    },
  }
}

/** Connects and takes the presence lock; or returns why not, and whether the server reported that it is busy. */
async function connect(home: Home, host: string): Promise<pg.Client | { busy: boolean; problem: string }> {
  const client = new pg.Client({
    host,
    port: PORT,
    user: SUPERUSER,
    password: home.password,
    database: 'postgres',
    application_name: 'tundish presence',
    ssl: false,
    // A frozen server accepts connections and does not respond.
    connectionTimeoutMillis: PATIENCE_MS,
  })
  // A lost connection emits an error event; without a listener it would end the program.
  client.on('error', () => {})
  try {
    await client.connect()
    // Waits while the last program stops the server, and fails once it has stopped.
    await client.query('select pg_advisory_lock_shared($1, $2)', PRESENCE)
    return client
  } catch (error) {
    void client.end().catch(() => {})
    const { code, message } = error as NodeJS.ErrnoException
    if (code === '28P01') throw wrongPassword(home.dataDir)
    // It needs a file for a new connection, and waiting makes no room.
    if (code === '53100') throw diskFull(home.dataDir)
    if (code === 'EACCES') throw error
    // 57P03, 57P01, 57P02: it is starting up, shutting down, or recovering from a crash.
    return { busy: code?.startsWith('57P') ?? false, problem: message }
  }
}

/**
 * Throws unless another program's server was first, or processes of the last one are still ending: then joining is retried.
 */
function refuseFailure({ code, output }: NonNullable<Starting['end']>, home: Home): void {
  if (
    code === 0 ||
    /\block file .* (already exists|is empty)|bogus data in lock file|shared memory block .* still in use/.test(output)
  )
    return
  throw outputSentence(output, 'start', home)
}

async function makeAndStart(home: Home, { log, throwaway = false, signal }: JoinOptions): Promise<Starting> {
  const say = (what: string) => log.info(what)
  refuseWhileUpgrading(home)
  if (!existsSync(home.cluster)) await makeCluster(home, { throwaway, say, signal })
  signal?.throwIfAborted()
  return await startServer(home, say)
}
