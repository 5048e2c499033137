// Why a restore is refused. What can be known without reading the content of the file is reported together.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config.ts'
import { Refusal } from '../../lib/errors.ts'
import type { Query } from '../../lib/pg/types.ts'
import { masterKeyIn, masterKeyPath, openSeal, type Seal } from '../../lib/secrets.ts'
import { type NamedAccount, refuseIfConnected } from './accounts.ts'
import type { Header } from './format.ts'
import { findData, schemaOf } from './schema.ts'
import { DamagedError } from './script.ts'
import { withSession } from './session.ts'

interface Wanted {
  file: string
  replace: boolean
  reasons: string[]
  /** Undefined if the operator did not say. */
  accounts: NamedAccount[] | undefined
  signal: AbortSignal
}

/**
 * Throws a `Refusal` with every reason, each in a line: those given, those of the file's description and those of the database,
 * which is looked at only if there are others; the restore checks it under its lock.
 */
export async function refuseEarly(
  config: Config,
  wanted: Wanted,
  { readHeader, verify }: { readHeader(): Promise<Header>; verify(): Promise<void> },
): Promise<void> {
  const reasons = [...wanted.reasons]
  const check = async <T>(work: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await work()
    } catch (error) {
      const refusal = asRefusal(wanted.file, error)
      if (!(refusal instanceof Refusal) || wanted.signal.aborted) throw refusal
      reasons.push(refusal.message)
      return undefined
    }
  }
  const header = await check(readHeader)
  if (header) {
    const others = reasons.length
    await check(() => checkMasterKey(config, header))
    await check(() => schemaOf(header))
    // A damaged description may give a wrong reason, so the file is verified before that reason is reported.
    const ofHeader = reasons.splice(others)
    if (ofHeader.length > 0) await check(verify)
    if (reasons.length === others) reasons.push(...ofHeader)
  }
  if (reasons.length === 0) return
  await check(() => lookAtDatabase(config, wanted))
  refuseFor(reasons)
}

/** Throws a `Refusal` if there is a reason. */
export function refuseFor(reasons: readonly string[]): void {
  if (reasons.length > 0) throw new Refusal(reasons.join('\n'))
}

/** A damaged file is refused; other errors are returned as they are. */
export function asRefusal(file: string, error: unknown): unknown {
  if (!(error instanceof DamagedError)) return error
  return new Refusal(`${file === '-' ? 'The backup' : file} is damaged: ${error.message} Nothing was changed.`)
}

/** Returns what decrypts the keys of the backup, or throws a `Refusal`. */
export function checkMasterKey({ masterKey, dataDir }: Config, { master_key }: Header): Seal | undefined {
  const present = masterKey ?? masterKeyIn(dataDir)
  const seal = present && openSeal(present)
  if (master_key === null || seal?.fingerprint === master_key) return seal
  const problem = present ? 'The master key is not that of the backup' : 'The master key of the backup is missing'
  throw new Refusal(
    `${problem}: set MASTER_KEY to the one of that installation, or copy its master.key to ${masterKeyPath(dataDir)}, and restore again.`,
  )
}

/** Throws a `Refusal` for what is in the way. A database that does not exist is not created for that. */
async function lookAtDatabase(config: Config, { replace, accounts, signal }: Wanted): Promise<void> {
  const { dataDir, databaseUrl, directDatabaseUrl } = config
  if (!(directDatabaseUrl ?? databaseUrl) && !existsSync(join(dataDir, 'postgres'))) return
  await withSession({ config, name: 'tundish restore', signal }, async ({ query }) => {
    const filled = await findData(query)
    const reasons = await reasonsOfDatabase(query, config, replace, filled)
    // The accounts of the backup are known only once it is loaded; most of them are here, too.
    if (accounts === undefined && filled.includes('merchant_accounts'))
      await refuseIfConnected(query).catch((error: unknown) => {
        if (!(error instanceof Refusal)) throw error
        reasons.push(error.message)
      })
    refuseFor(reasons)
  })
}

/** What is in the way of a restore: data, unless it may be replaced, and processes that work with it. */
export async function reasonsOfDatabase(
  query: Query,
  { directDatabaseUrl }: Config,
  replace: boolean,
  filled: string[],
): Promise<string[]> {
  if (filled.length === 0) return []
  const reasons: string[] = []
  if (!replace) {
    const some = filled.slice(0, 3).join(', ')
    reasons.push(
      `This database holds data already (${some}${filled.length > 3 ? ', …' : ''}): restore into an empty one, or add --replace to delete its data.`,
    )
  }
  // A charge that a running server is making would lose its order.
  const [row] = await query(
    `select count(*) as n from pg_stat_activity where datname = current_database() and application_name = 'tundish'`,
  )
  if (row!.n !== '0') {
    const pooler = directDatabaseUrl ? ' If only a pooler has connections of it, send RECONNECT to its console.' : ''
    reasons.push(`Tundish is running on this database: stop every process of it, then restore with --replace.${pooler}`)
  }
  return reasons
}
