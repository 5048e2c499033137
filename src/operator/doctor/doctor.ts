// The doctor: checks an installation without changing it, and says how to fix what it finds.
import { existsSync } from 'node:fs'
import { stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../config.ts'
import { auditHeadsPath } from '../../core/audit/audit.ts'
import { systemClock } from '../../lib/clock.ts'
import { openEmbedded } from '../../lib/embedded/embedded.ts'
import { Refusal, UsageError } from '../../lib/errors.ts'
import { type Db, openDb } from '../../lib/pg/db.ts'
import { causeOf } from '../../lib/pg/errors.ts'
import { masterKeyIn, masterKeyPath, openSeal, type Seal } from '../../lib/secrets.ts'
import { rejectWhenAborted } from '../../lib/when-aborted.ts'
import { CredentialsUnreadable } from '../../payments/providers/account.ts'
import { openProviders } from '../../payments/providers/open.ts'
import { registered, registeredSimulators } from '../../simulators/play-money.ts'
import { checkAlerts } from './alerts.ts'
import { checkArchive } from './archive.ts'
import { checkClock, checkMigrations, checkReplication, checkServer, checkSync } from './database.ts'
import { checkFailovers } from './failover.ts'
import { checkFigures } from './figures.ts'
import { checkFiles, checkOwners } from './files.ts'
import { type Finding, failed, ok, warning } from './finding.ts'
import { checkImports } from './imports.ts'
import { checkMoves } from './moves.ts'
import { checkAccounts, checkCharges, checkMismatches, checkProviders } from './payments.ts'
import { checkPooler, unusable } from './pooler.ts'
import { checkRates } from './rates.ts'
import { checkAudit, checkCounts, checkLedgers, checkMasterKey, fixCounts } from './records.ts'
import { checkReplica } from './replica.ts'
import { checkRestored } from './restored.ts'
import { checkSignIn } from './sign-in.ts'
import { checkTwins } from './twins.ts'
import { checkSigningKeys } from './webhooks.ts'

export type { Finding } from './finding.ts'

const MIB = 1024 * 1024
const ENOUGH_DISK_BYTES = 2048 * MIB
const MIN_DISK_BYTES = 256 * MIB
const PROVIDER_DEADLINE_MS = 3_000

interface Examination {
  /** Corrects the counters first, which is the only thing the doctor can change. */
  fix: boolean
  /** Ends the checks; the promise then rejects with the signal's reason. */
  signal: AbortSignal | undefined
}

/** Runs all checks. */
export async function examine(config: Config, { fix = false, signal }: Partial<Examination> = {}): Promise<Finding[]> {
  const findings = [
    ...checkSettings(config),
    await checkDisk(config),
    ...(await checkFiles(config)),
    ...(await checkOwners(config)),
  ]
  if (!config.databaseUrl && !existsSync(join(config.dataDir, 'postgres'))) {
    return [...findings, failed('database', `There is no database in ${config.dataDir} yet.`, 'Run: tundish serve')]
  }
  let close: (() => Promise<void>) | undefined
  try {
    const opened = await open(config, signal)
    close = opened.close
    findings.push(...(await checkMasterKeyFile(config)))
    return [...findings, ...(await Promise.race([examineDatabase(config, opened.db, fix), rejectWhenAborted(signal)]))]
  } catch (error) {
    signal?.throwIfAborted()
    // Once the database is open, these sentences are about files.
    if (close && (error instanceof UsageError || error instanceof Refusal))
      return [...findings, failed('files', error.message, 'Correct that file, and run the doctor again.')]
    return [...findings, failed('database', ...unreachable(error, config))]
  } finally {
    await close?.()
  }
}

function checkSettings(config: Config): Finding[] {
  const findings: Finding[] = []
  if (config.webhookAllowPrivate) {
    const message = 'WEBHOOK_ALLOW_PRIVATE lets webhooks reach this machine and its network.'
    findings.push(warning('settings', message, 'Unset it if callers you do not trust can set webhook addresses.'))
  }
  if (config.databaseUrl && config.simulatorUrl) {
    const message = 'SIMULATOR_URL is set: charges at the simulator move no real money.'
    findings.push(warning('settings', message, 'Unset it in production.'))
  }
  if (findings.length > 0) return findings
  return [ok('settings', config.databaseUrl ? 'Database of DATABASE_URL.' : `Embedded database in ${config.dataDir}.`)]
}

async function checkDisk({ dataDir }: Config): Promise<Finding> {
  const disk = await statfs(dataDir).catch(() => undefined)
  if (!disk) return warning('disk', `The folder ${dataDir} does not exist yet.`, 'The first start creates it.')
  const free = disk.bavail * disk.bsize
  const message = `${Math.floor(free / MIB).toLocaleString('en')} MiB are free on the disk of ${dataDir}.`
  if (free >= ENOUGH_DISK_BYTES) return ok('disk', message)
  const fix = 'Free some space, or move DATA_DIR to another disk.'
  return free >= MIN_DISK_BYTES ? warning('disk', message, fix) : failed('disk', message, fix)
}

async function checkMasterKeyFile({ masterKey, dataDir }: Config): Promise<Finding[]> {
  if (masterKey) return []
  const path = masterKeyPath(dataDir)
  const file = await stat(path).catch(() => undefined)
  if (!file || (file.mode & 0o077) === 0) return []
  return [failed('master key', `${path} is readable by other users of this machine.`, `Run: chmod 600 ${path}`)]
}

async function open(config: Config, signal?: AbortSignal): Promise<{ db: Db; close: () => Promise<void> }> {
  const silent = { info() {}, warn() {} }
  const embedded = config.databaseUrl ? undefined : await openEmbedded({ dataDir: config.dataDir, log: silent, signal })
  const url = embedded?.url ?? config.databaseUrl!
  const { directDatabaseUrl: directUrl, statementTimeoutMs } = config
  const name = 'tundish doctor'
  const db = openDb({ url, directUrl, applicationName: name, connections: 2, readConnections: 1, statementTimeoutMs })
  const close = async () => {
    await db.close()
    await embedded?.close()
  }
  return { db, close }
}

async function examineDatabase(config: Config, db: Db, fix: boolean): Promise<Finding[]> {
  const server = await checkServer(db)
  const migrations = await checkMigrations(db)
  // The other checks need the tables.
  if (migrations.level === 'failed') return [...server, migrations]
  const key = config.masterKey ?? masterKeyIn(config.dataDir)
  const { finding: masterKey, seal } = await checkMasterKey(db, key && openSeal(key))
  if (fix) await fixCounts(db)
  return [
    ...server,
    migrations,
    await checkClock(db),
    ...(await checkReplication(db, config)),
    ...(await checkArchive(db)),
    ...(await checkFailovers(db)),
    ...(await checkRestored(db)),
    ...(await checkMoves(db)),
    ...(await checkSync(db)),
    ...(await checkPooler(db, config)),
    ...(await checkReplica(db, config.readDatabaseUrl)),
    masterKey,
    ...(await checkSignIn(db, config.oidc?.roles ?? [])),
    ...(await checkProviderOfPeople(config)),
    ...(await checkCounts(db)),
    ...(await checkFigures(db)),
    ...(await checkTwins(db)),
    ...(await checkLedgers(db, config.erasureLedger)),
    ...(await checkAudit(db, seal, auditHeadsPath(config))),
    ...(await checkProvidersOf(config, db, seal)),
    ...(await checkAccounts(db)),
    ...(await checkImports(db)),
    ...(await checkSigningKeys(db)),
    ...(await checkAlerts(db)),
    ...(await checkRates(db, config)),
    ...(await checkCharges(db)),
    ...(await checkMismatches(db)),
  ]
}

async function checkProviderOfPeople({ oidc }: Config): Promise<Finding[]> {
  if (!oidc) return []
  // The library is needed only here.
  const { checkIdentityProvider } = await import('./identity-provider.ts')
  return [await checkIdentityProvider(oidc)]
}

async function checkProvidersOf(config: Config, db: Db, seal: Seal | undefined): Promise<Finding[]> {
  const simulatorUrl = config.simulatorUrl ?? (config.databaseUrl ? undefined : await registered(db))
  const simulators = await registeredSimulators(db)
  const providers = openProviders({
    db,
    clock: systemClock,
    seal,
    deadlineMs: PROVIDER_DEADLINE_MS,
    simulatorUrl,
    stripeApiUrl: config.stripeApiUrl,
    apiUrls: config.apiUrls,
    simulatorUrls: simulators,
  })
  try {
    return await checkProviders(db, providers, config.simulatorUrl !== undefined)
  } catch (error) {
    if (!(error instanceof CredentialsUnreadable)) throw error
    return [failed('providers', error.message, 'Connect it again: tundish merchant-account connect')]
  } finally {
    providers.close()
  }
}

function unreachable(error: unknown, { databaseUrl }: Config): [message: string, fix: string] {
  if (error instanceof UsageError) return ['The embedded database cannot be used.', error.message]
  if (databaseUrl) return unusable(error, 'DATABASE_URL')
  return [`The database cannot be used (${causeOf(error)}).`, 'See the log.']
}
