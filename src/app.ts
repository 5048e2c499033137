// Opens what all parts of the program share, in the order they need each other, and closes it in reverse.
import { type DestinationStream, type Logger, pino } from 'pino'
import { type Audit, auditHeadsPath, openAudit } from './audit.ts'
import type { Config } from './config.ts'
import { type KeyCache, openKeyCache } from './key-cache.ts'
import { maskDigits } from './lib/card-data.ts'
import { type Clock, systemClock } from './lib/clock.ts'
import { type Db, isUnavailable, openDb } from './lib/db.ts'
import { openEmbedded } from './lib/embedded.ts'
import { UsageError } from './lib/errors.ts'
import { errorForLog } from './lib/log-error.ts'
import { migrate } from './lib/migrate.ts'
import { masterKeyIn, openSeal, type Seal } from './lib/secrets.ts'
import { type Limits, openLimits } from './limits.ts'
import { type Metrics, openMetrics } from './metrics.ts'
import { openPlayMoney, registered } from './play-money.ts'
import type { Providers } from './providers/provider.ts'
import { SimulatorProvider } from './providers/simulator.ts'

export interface App {
  config: Config
  /** With the password; for those who need a connection of their own kind. Never for a log. */
  databaseUrl: string
  embedded: boolean
  /** What the user should know about where things are. */
  notice: string | undefined
  /** The versions of the migrations that were applied at this start. */
  migrated: number[]
  db: Db
  log: Logger
  clock: Clock
  seal: Seal
  keys: KeyCache
  limits: Limits
  metrics: Metrics
  audit: Audit
  /** The payment providers; the simulator only where play money is allowed. */
  providers: Providers
  close(): Promise<void>
}

export interface OpenOptions {
  log?: Logger
  /** Whether this program may run the simulator itself; `always` also with `DATABASE_URL`, as the demo does. */
  simulator?: 'embedded' | 'always' | 'never'
  /** Short commands need few connections. */
  connections?: { read: number; plain: number }
}

/** Opens the database (embedded, or `DATABASE_URL`), brings it up to date, and checks the master key. */
export async function openApp(config: Config, options: OpenOptions = {}): Promise<App> {
  const log = options.log ?? openLog(config.logLevel)
  const closers: (() => Promise<void>)[] = []
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer()
  }
  try {
    const embedded =
      config.databaseUrl === undefined ? await openEmbedded({ dataDir: config.dataDir, log: plain(log) }) : undefined
    if (embedded) closers.push(() => embedded.close())
    const seal = openSeal(config.masterKey ?? masterKeyIn(config.dataDir))
    const databaseUrl = embedded?.url ?? config.databaseUrl!
    const migrated = await reachable(migrate(databaseUrl))
    const { read, plain: connections } = options.connections ?? { read: 2, plain: config.databaseConnections }
    const db = openDb({ url: databaseUrl, applicationName: 'tundish', readConnections: read, connections })
    closers.push(() => db.close())
    await checkMasterKey(db, seal)
    const keys = openKeyCache(db, systemClock)
    const limits = openLimits({ config, db, clock: systemClock, log })
    closers.push(() => limits.close())
    const metrics = openMetrics(db)
    const audit = openAudit(seal, auditHeadsPath(config))
    const providers = await openProviders(
      { config, db, clock: systemClock, log, metrics },
      options.simulator ?? 'never',
      closers,
    )
    const shared = {
      config,
      databaseUrl,
      migrated,
      db,
      log,
      clock: systemClock,
      seal,
      keys,
      limits,
      metrics,
      audit,
      providers,
      close,
    }
    return { ...shared, embedded: embedded !== undefined, notice: embedded?.notice }
  } catch (error) {
    await close()
    throw error
  }
}

/** The providers this program can reach. Play money reaches production only by an address that somebody set. */
async function openProviders(
  shared: Parameters<typeof openPlayMoney>[0] & { metrics: Metrics },
  run: 'embedded' | 'always' | 'never',
  closers: (() => Promise<void>)[],
): Promise<Providers> {
  const { config, db, clock } = shared
  let url: string | (() => string) | undefined = config.simulatorUrl
  if (url === undefined && (run === 'always' || (run === 'embedded' && config.databaseUrl === undefined))) {
    const playMoney = await openPlayMoney(shared)
    closers.push(() => playMoney.close())
    url = playMoney.url
  }
  // A short command asks the one that a server of this data folder runs.
  if (url === undefined && config.databaseUrl === undefined) url = await registered(db)
  if (url === undefined) return new Map()
  const provider = new SimulatorProvider({ url, clock, deadlineMs: config.providerTimeoutMs })
  closers.push(async () => provider.close())
  return new Map([[provider.name, shared.metrics.measure(provider)]])
}

/** Logs are JSON lines, on standard output (1), standard error (2), or wherever else. */
export function openLog(level: string, to: 1 | 2 | DestinationStream = 1): Logger {
  const serializers = { err: errorForLog }
  // The last guard before a line is written: what is shaped like a card number never is.
  const hooks = { streamWrite: maskDigits }
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers, hooks }
  return pino(options, typeof to === 'number' ? pino.destination({ dest: to, sync: false }) : to)
}

const plain = (log: Logger) => ({ info: (text: string) => log.info(text), warn: (text: string) => log.warn(text) })

/** Says in a sentence why the database of the settings cannot be used. */
export async function reachable<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise
  } catch (error) {
    if (error instanceof UsageError) throw error
    const { code, message } = error as { code?: string; message: string }
    const refused = ['28P01', '28000', '3D000', '42501'].includes(code ?? '')
    if (!refused && !isUnavailable(error)) throw error
    // PostgreSQL's sentence names the user or database, never the password.
    throw new UsageError(
      `The database of DATABASE_URL cannot be used (${message}): check its address, name, user, password and rights.`,
    )
  }
}

/** Without the right master key no sealed key can be opened: better not to start than to find out later. */
async function checkMasterKey(db: Db, seal: Seal): Promise<void> {
  await db.query(`insert into instance (name, value) values ('master key', $1) on conflict (name) do nothing`, [
    seal.fingerprint,
  ])
  const [row] = await db.query(`select value from instance where name = 'master key'`)
  if (row!.value !== seal.fingerprint) {
    throw new UsageError(
      'MASTER_KEY (or master.key in the data folder) is not the one this database was set up with: start with the right one, or restore it from your backup.',
    )
  }
}
