// Runs the provider simulators of a data folder: one of each kind, in the process that holds the lock on its ledger.
import { join } from 'node:path'
import type { Config } from '../config.ts'
import type { Clock } from '../lib/clock.ts'
import { makeFolder } from '../lib/files.ts'
import type { Db } from '../lib/pg/db.ts'
import type { Simulator } from './run.ts'

export interface PlayMoney {
  /** The last known address of the simulator. */
  url(): string
  close(): Promise<void>
}

interface Shared {
  config: Config
  db: Db
  clock: Clock
  log: { error(details: object, message: string): void }
}

type Dialect = 'tundish' | 'stripe' | 'primer'

const LOOK_MS = 1000
const NOWHERE = 'http://127.0.0.1:9'

/** For each dialect, the row of `instance` with its address, and the file name of its ledger. */
const KINDS = {
  tundish: { name: 'simulator url', file: 'simulator.ndjson' },
  stripe: { name: 'stripe simulator url', file: 'simulator-stripe.ndjson' },
  primer: { name: 'primer simulator url', file: 'simulator-primer.ndjson' },
} as const

/** The ledger of the simulator that belongs to a data folder. */
export const ledgerFile = (dataDir: string, dialect: Dialect = 'tundish') => join(dataDir, KINDS[dialect].file)

/**
 * Runs a simulator, or uses that of another process, whose address is in the database. When that process ends, one of the
 * others runs the simulator, unless it was opened with `follow`.
 */
export async function openPlayMoney(
  shared: Shared,
  { follow: only = false, dialect = 'tundish' }: { follow?: boolean; dialect?: Dialect } = {},
): Promise<PlayMoney> {
  const stopping = new AbortController()
  let own: Simulator | undefined
  let url = NOWHERE

  async function look(): Promise<void> {
    if (!only) own ??= await tryToStart(shared, dialect)
    url = own ? own.url : ((await registered(shared.db, dialect)) ?? NOWHERE)
    if (own) await register(shared.db, dialect, own.url)
  }

  async function follow(): Promise<void> {
    while (!own && !stopping.signal.aborted) {
      await shared.clock.sleep(LOOK_MS, stopping.signal)
      // Repeated after any error, for example while the database is unavailable.
      await look().catch((error) => shared.log.error({ err: error }, 'The simulator cannot be looked for.'))
    }
  }

  await look()
  const following = follow()
  return {
    url: () => url,
    async close() {
      stopping.abort()
      await following
      await own?.close()
    },
  }
}

/** The address that the running simulator's program registered. */
export async function registered(db: Db, dialect: Dialect = 'tundish'): Promise<string | undefined> {
  const [row] = await db.query('select value from instance where name = $1', [KINDS[dialect].name])
  return row?.value ?? undefined
}

/** By psp: the addresses of the running simulators that have a provider's API. */
export async function registeredSimulators(db: Db): Promise<Partial<Record<string, () => string>>> {
  const rows = await db.query('select name, value from instance where name = any($1)', [
    PSPS.map((psp) => KINDS[psp].name),
  ])
  const found = PSPS.map((psp) => [psp, rows.find(({ name }) => name === KINDS[psp].name)?.value] as const)
  return Object.fromEntries(found.flatMap(([psp, url]) => (url ? [[psp, () => url]] : [])))
}

/** The demo's simulators that have a provider's API: their dialects are the names of the providers. */
export const PSPS = ['stripe', 'primer'] as const

async function register(db: Db, dialect: Dialect, url: string): Promise<void> {
  await db.query(
    'insert into instance (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value',
    [KINDS[dialect].name, url],
  )
}

async function tryToStart({ config, log }: Shared, dialect: Dialect): Promise<Simulator | undefined> {
  // Loaded only if needed: most commands never run a simulator.
  const { LedgerTaken } = await import('./lock.ts')
  makeFolder(config.dataDir)
  const options = { port: 0, ledgerFile: ledgerFile(config.dataDir, dialect), log: log as never }
  try {
    if (dialect === 'stripe') return await (await import('./stripe/server.ts')).startStripeSimulator(options)
    if (dialect === 'primer') return await (await import('./primer/server.ts')).startPrimerSimulator(options)
    return await (await import('./server.ts')).startSimulator(options)
  } catch (error) {
    // Another program holds the ledger: that one runs the simulator.
    if (error instanceof LedgerTaken) return undefined
    throw error
  }
}
