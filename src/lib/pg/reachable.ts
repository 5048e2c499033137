// Says in one sentence why the database of a setting cannot be used.
import type { Logger } from 'pino'
import { UsageError } from '../errors.ts'
import { whyUntrusted } from './database-url.ts'
import type { Db } from './db.ts'
import { causeOf, isPasswordRefused, isUnavailable, sqlState } from './errors.ts'
import {
  fixForPooler,
  isPgpoolAt,
  isShared,
  lackedSettings,
  missingSettings,
  needsDirectUrl,
  throughPgpool,
} from './pooler.ts'

const DISK_FULL = '53100'

const TRUST =
  'name the certificate of its authority as sslrootcert=FILE, and the host as its certificate does; sslmode=disable goes without TLS.'

/** Turns a failure to connect into a `UsageError` that says why the database of the setting cannot be used. */
export async function reachable<T>(promise: Promise<T>, setting = 'DATABASE_URL'): Promise<T> {
  try {
    return await promise
  } catch (error) {
    if (error instanceof UsageError) throw error
    const fix = fixForPooler(error, setting)
    if (fix) throw new UsageError(fix)
    const refused = ['28P01', '28000', '3D000', '42501'].includes(sqlState(error) ?? '') || isPasswordRefused(error)
    if (!refused && !isUnavailable(error)) throw error
    const untrusted = whyUntrusted(error)
    if (untrusted) throw new UsageError(`The database of ${setting} cannot be trusted (${untrusted}): ${TRUST}`)
    const what =
      sqlState(error) === DISK_FULL ? 'free space on its disk' : 'check its address, name, user, password and rights'
    // PostgreSQL's sentence names the user or database, never the password.
    throw new UsageError(`The database of ${setting} cannot be used (${causeOf(error)}): ${what}.`)
  }
}

/**
 * Refuses a pooler that is set to ignore the settings of sessions instead of refusing them; it needs `DIRECT_DATABASE_URL`. In session
 * mode the role's settings are enough.
 */
export async function refuseSilentPooler(db: Db, settings: Record<string, string>): Promise<void> {
  const missing = await reachable(missingSettings(db.query, settings))
  if (missing.length > 0 || (await reachable(isShared(db.connect))))
    throw new UsageError(needsDirectUrl('DATABASE_URL'))
}

/**
 * Refuses Pgpool-II at `url`, the address of `DATABASE_URL`; a pooler there that refuses transactions, or whose connections lack the time
 * zone and date format that times are parsed with; and a pooler at `DIRECT_DATABASE_URL`. Other missing settings only change plans and
 * timeouts, so they are logged.
 */
export async function checkPooler(db: Db, url: string, settings: Record<string, string>, log: Logger): Promise<void> {
  // After the migration: a pooler keeps the connection, which has the settings that the role has now.
  if (await reachable(isPgpoolAt(url))) throw new UsageError(throughPgpool('DATABASE_URL').join(' '))
  const direct = 'DIRECT_DATABASE_URL'
  if (await reachable(isShared(db.connect), direct)) throw new UsageError(needsDirectUrl(direct))
  const { query, release } = await reachable(db.connect(), direct)
  const lacking = db.tx((pooled) => lackedSettings(pooled, query, settings))
  const lacked = await reachable(lacking).finally(() => release())
  if (!lacked) return
  const sentence = `${lacked.message} ${lacked.fix}`
  if (lacked.names.includes('TimeZone') || lacked.names.includes('DateStyle')) throw new UsageError(sentence)
  log.warn(sentence)
}

/** The message and fix for a role, its name quoted, that finds no schema for its tables. */
export function noSchema(role: string): [message: string, fix: string] {
  return [
    `The search_path of the role ${role} has no schema that exists and that it may use.`,
    `Run, as the owner: grant usage, create on schema public to ${role}; and, if it has another search_path: alter role ${role} set search_path = public;`,
  ]
}

/** The message and fix for a database in which the role, its name quoted, may not write. */
export function readOnly(role: string): [message: string, fix: string] {
  return [
    'Nothing can be written: default_transaction_read_only is on.',
    `A hosted database sets it when its disk is full: free some. Otherwise reset it for the database or the role ${role}.`,
  ]
}
