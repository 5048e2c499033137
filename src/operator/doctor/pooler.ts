// The doctor's checks of a pooler: both addresses lead to one database, and its connections have the settings of the role.
import type { Config } from '../../config.ts'
import { settingsOf } from '../../lib/pg/client-config.ts'
import type { Db } from '../../lib/pg/db.ts'
import { causeOf } from '../../lib/pg/errors.ts'
import {
  fixForPooler,
  isPgpoolAt,
  isShared,
  lackedSettings,
  missingSettings,
  needsDirectUrl,
  throughPgpool,
} from '../../lib/pg/pooler.ts'
import type { Query } from '../../lib/pg/types.ts'
import { type Finding, failed, ok, warning } from './finding.ts'

export async function checkPooler(db: Db, config: Config): Promise<Finding[]> {
  for (const [setting, url] of Object.entries({
    DATABASE_URL: config.databaseUrl,
    DIRECT_DATABASE_URL: config.directDatabaseUrl,
  })) {
    if (url && (await isPgpoolAt(url).catch(() => false))) return [failed('pooler', ...throughPgpool(setting))]
  }
  if (!config.directDatabaseUrl) {
    const missing = await missingSettings(db.query, settingsOf(config))
    if (missing.length === 0) return shared(db, 'DATABASE_URL')
    const message = `A connection of DATABASE_URL lacks the settings that it was opened with (${missing.join(', ')}).`
    return [failed('pooler', message, needsDirectUrl('DATABASE_URL'))]
  }
  const direct = await db.connect().catch((error: unknown) => ({ error }))
  if ('error' in direct) return [failed('pooler', ...unusable(direct.error, 'DIRECT_DATABASE_URL'))]
  try {
    const found = await shared(db, 'DIRECT_DATABASE_URL')
    return found.length > 0 ? found : [await compare(db.query, direct.query, config)]
  } finally {
    direct.release()
  }
}

async function shared(db: Db, setting: string): Promise<Finding[]> {
  if (!(await isShared(db.connect))) return []
  return [failed('pooler', sharedConnections(setting), needsDirectUrl(setting))]
}

/** The message for a pooler in transaction mode at the address of this setting. */
export const sharedConnections = (setting: string) =>
  `A pooler gives the connections of ${setting} to several clients in turn.`

async function compare(pooled: Query, direct: Query, config: Config): Promise<Finding> {
  const [one] = await direct(SAME)
  const [other] = await pooled(SAME)
  if (one!.same !== other!.same) {
    const message = 'DIRECT_DATABASE_URL and DATABASE_URL lead to different databases.'
    return failed('pooler', message, 'Set both to one database, DIRECT_DATABASE_URL without the pooler.')
  }
  const lacked = await lackedSettings(pooled, direct, settingsOf(config))
  if (lacked) return warning('pooler', lacked.message, `${lacked.fix} Then run the doctor again.`)
  return ok('pooler', 'Both addresses lead to the same database.')
}

/** The cause and the fix for a database that cannot be reached. PostgreSQL's messages never contain the password. */
export function unusable(error: unknown, setting: string): [message: string, fix: string] {
  const fix = fixForPooler(error, setting) ?? `Check the address, name, user, password and rights in ${setting}.`
  const message =
    setting === 'DATABASE_URL' ? 'The database cannot be used' : `The database of ${setting} cannot be used`
  return [`${message} (${causeOf(error)}).`, fix]
}

// The start time of the server and the number of the database identify it.
const SAME = `
  select concat_ws(' ', extract(epoch from pg_postmaster_start_time()), oid) as same from pg_database where datname = current_database()`
