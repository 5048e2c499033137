// The simulator that `serve` brings along: one for each data folder, whoever of its programs holds the ledger runs it.
import { join } from 'node:path'
import type { Config } from '../config.ts'
import type { Clock } from '../lib/clock.ts'
import { makeFolder } from '../lib/files.ts'
import type { Db } from '../lib/pg/db.ts'
import type { Simulator } from './server.ts'

export interface PlayMoney {
  /** Where the simulator is now, by what this process knows. */
  url(): string
  close(): Promise<void>
}

interface Shared {
  config: Config
  db: Db
  clock: Clock
  log: { error(details: object, message: string): void }
}

const LOOK_MS = 1000
const NOWHERE = 'http://127.0.0.1:9'

/** The ledger of the simulator that belongs to a data folder. */
export const ledgerFile = (dataDir: string) => join(dataDir, 'simulator.ndjson')

/** The ledger of the simulator with Stripe's API. */
export const stripeLedgerFile = (dataDir: string) => join(dataDir, 'simulator-stripe.ndjson')

/**
 * Runs the simulator, or follows the program that does: its address stands in the database, and when it leaves, one of
 * those who follow takes the ledger over, unless it is only to `follow`.
 */
export async function openPlayMoney(shared: Shared, { follow: only = false } = {}): Promise<PlayMoney> {
  const stopping = new AbortController()
  let own: Simulator | undefined
  let url = NOWHERE

  async function look(): Promise<void> {
    if (!only) own ??= await tryToStart(shared)
    url = own ? own.url : ((await registered(shared.db)) ?? NOWHERE)
    if (own) await register(shared.db, own.url)
  }

  async function follow(): Promise<void> {
    while (!own && !stopping.signal.aborted) {
      await shared.clock.sleep(LOOK_MS, stopping.signal)
      // A database that is away is no reason to stop following.
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
export async function registered(db: Db): Promise<string | undefined> {
  const [row] = await db.query(`select value from instance where name = 'simulator url'`)
  return row?.value ?? undefined
}

async function register(db: Db, url: string): Promise<void> {
  await db.query(
    `insert into instance (name, value) values ('simulator url', $1) on conflict (name) do update set value = excluded.value`,
    [url],
  )
}

async function tryToStart({ config, log }: Shared): Promise<Simulator | undefined> {
  // A server of its own, which most commands never run.
  const { startSimulator } = await import('./server.ts')
  const { LedgerTaken } = await import('./lock.ts')
  makeFolder(config.dataDir)
  try {
    return await startSimulator({ port: 0, ledgerFile: ledgerFile(config.dataDir), log: log as never })
  } catch (error) {
    // Another program holds the ledger: that one runs the simulator.
    if (error instanceof LedgerTaken) return undefined
    throw error
  }
}
