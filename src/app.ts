// Opens the parts that the whole program shares, in the order of their dependencies, and closes them in reverse order.
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import { type Audit, auditHeadsPath, openAudit } from './core/audit/audit.ts'
import { type Limits, openLimits } from './core/limits/limits.ts'
import { loadMetrics } from './core/metrics/load.ts'
import type { Metrics, WorkerMetrics } from './core/metrics/metrics.ts'
import { type KeyCache, openKeyCache } from './core/tenants/key-cache.ts'
import { type KeyUses, openKeyUses } from './core/tenants/key-uses.ts'
import { openSealOf } from './core/tenants/open-seal.ts'
import { type Clock, systemClock } from './lib/clock.ts'
import { openEmbedded } from './lib/embedded/embedded.ts'
import { fullDiskSentence } from './lib/embedded/sentences.ts'
import { openLog } from './lib/log.ts'
import { settingsOf } from './lib/pg/client-config.ts'
import { type Db, openDb } from './lib/pg/db.ts'
import { migrate } from './lib/pg/migrate.ts'
import { checkPooler, reachable, refuseSilentPooler } from './lib/pg/reachable.ts'
import type { Seal } from './lib/secrets.ts'
import type { SimulatorUrls } from './payments/providers/adapters.ts'
import { loadProviders } from './payments/providers/load.ts'
import type { Providers } from './payments/providers/provider.ts'
import { openPlayMoney, PSPS, registered, registeredSimulators } from './simulators/play-money.ts'

export interface App {
  config: Config
  /** The address of the database itself, not of a pooler, for code that opens its own connections. It contains the password. */
  databaseUrl: string
  embedded: boolean
  /** A message about the place of the embedded database, if it is not in the data folder. */
  notice: string | undefined
  /** The versions of the migrations that were applied at this start. */
  migrated: number[]
  db: Db
  log: Logger
  clock: Clock
  seal: Seal
  keys: KeyCache
  keyUses: KeyUses
  limits: Limits
  metrics: Metrics
  audit: Audit
  /** The payment providers. The simulator is one of them only if test money is allowed. */
  providers: Providers
  /** By psp: the addresses of the simulators with a provider's API, for the demo's other merchant accounts. */
  simulatorUrls: SimulatorUrls
  close(): Promise<void>
}

export interface OpenOptions {
  log?: Logger
  /** Whether this program may run the simulator itself; `always` also with `DATABASE_URL`, as the demo does. */
  simulator?: 'embedded' | 'always' | 'never'
  /** Called while the embedded database starts, for work that does not need it. */
  whileStarting?: () => void
  /** Given to one of several workers. The supervisor then runs the simulator. */
  worker?: WorkerMetrics
  /** Aborts opening: every open part is closed again, and the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined
  /** Short commands need few connections. */
  connections?: { read: number; plain: number }
  /** Short commands count nothing, because their metrics cannot be read, and open payment providers at their first use. */
  unmeasured?: boolean
}

/** Opens the database (embedded, or `DATABASE_URL`), brings it up to date, and checks the master key. */
export async function openApp(config: Config, options: OpenOptions = {}): Promise<App> {
  const log = options.log ?? openLog(config.logLevel)
  const closers: (() => Promise<void>)[] = []
  const close = async () => {
    const errors: unknown[] = []
    for (const closer of closers.splice(0).reverse()) await closer().catch((error) => errors.push(error))
    if (errors.length > 0) throw errors[0]
  }
  const { dataDir } = config
  const isEmbedded = config.databaseUrl === undefined
  // The address of the embedded database is none that can be mended.
  const named: typeof reachable = isEmbedded ? (work) => work : reachable
  try {
    const { whileStarting, signal } = options
    const embedded = isEmbedded ? await openEmbedded({ dataDir, log, whileStarting, signal }) : undefined
    if (embedded) closers.push(() => embedded.close())
    options.signal?.throwIfAborted()
    const databaseUrl = embedded?.url ?? config.databaseUrl!
    const { directDatabaseUrl: directUrl, statementTimeoutMs } = config
    const settings = settingsOf({ statementTimeoutMs })
    const migrating = migrate(directUrl ?? databaseUrl, directUrl ? settings : {}, (sentence) => log.warn(sentence))
    const migrated = await named(migrating, directUrl ? 'DIRECT_DATABASE_URL' : undefined)
    const { read, plain: connections } = options.connections ?? { read: 3, plain: config.databaseConnections ?? 12 }
    const db = openDb({
      url: databaseUrl,
      directUrl,
      applicationName: 'tundish',
      readConnections: read,
      connections,
      statementTimeoutMs,
    })
    closers.push(() => db.close())
    if (directUrl) await checkPooler(db, databaseUrl, settings, log)
    else if (!embedded) await refuseSilentPooler(db, settings)
    options.signal?.throwIfAborted()
    const seal = await named(openSealOf(db, config))
    const shared = { config, db, clock: systemClock, log }
    const keys = openKeyCache(db, systemClock)
    const [keyUses, limits] = [openKeyUses(shared), openLimits(shared)]
    closers.push(keyUses.close, () => limits.close())
    const metrics = await loadMetrics(db, options)
    const audit = openAudit(seal, auditHeadsPath(config), log)
    const simulator = await findSimulator(shared, options)
    if (simulator.close) closers.push(simulator.close)
    const simulatorUrls = await openSimulators(shared, options, closers)
    const providers = await loadProviders(options, {
      db,
      clock: systemClock,
      seal,
      deadlineMs: config.providerTimeoutMs,
      simulatorUrl: simulator.url,
      ...{ stripeApiUrl: config.stripeApiUrl, apiUrls: config.apiUrls },
      simulatorUrls,
      wrap: metrics.measure,
    })
    closers.push(async () => providers.close())
    return {
      databaseUrl: directUrl ?? databaseUrl,
      embedded: embedded !== undefined,
      notice: embedded?.notice,
      migrated,
      ...shared,
      seal,
      keys,
      keyUses,
      limits,
      metrics,
      audit,
      providers,
      simulatorUrls,
      close,
    }
  } catch (error) {
    await close().catch(() => {})
    throw isEmbedded ? fullDiskSentence(error, dataDir) : error
  }
}

/** Finds or starts the simulator, if this program may use it. With `DATABASE_URL` only the demo or `SIMULATOR_URL` allow it. */
async function findSimulator(
  shared: Parameters<typeof openPlayMoney>[0],
  { simulator: run = 'never', worker }: OpenOptions,
): Promise<{ url: string | (() => string) | undefined; close?: () => Promise<void> }> {
  const { config, db } = shared
  if (config.simulatorUrl !== undefined) return { url: config.simulatorUrl }
  if (run === 'always' || (run === 'embedded' && config.databaseUrl === undefined)) {
    const { url, close } = await openPlayMoney(shared, { follow: worker !== undefined })
    return { url, close }
  }
  // A short command uses the simulator of a server that runs in the same data folder.
  return { url: config.databaseUrl === undefined ? await registered(db) : undefined }
}

/** Starts the simulators with a provider's API for the demo. A short command uses those of a running server. */
async function openSimulators(
  shared: Parameters<typeof openPlayMoney>[0],
  { simulator: run = 'never', worker }: OpenOptions,
  closers: (() => Promise<void>)[],
): Promise<SimulatorUrls> {
  if (run !== 'always') return registeredSimulators(shared.db)
  const open = async (psp: (typeof PSPS)[number]) => {
    const { url, close } = await openPlayMoney(shared, { dialect: psp, follow: worker !== undefined })
    closers.push(close)
    return [psp, url] as const
  }
  const opening = PSPS.map(open)
  // If one cannot be opened, the others have to be closed.
  await Promise.allSettled(opening)
  return Object.fromEntries(await Promise.all(opening))
}
