// The doctor's checks of a pooler: both addresses lead to one database, and its connections have the settings of the role.
import type { Config } from '../../config.ts'
import { settingsOf } from '../../lib/pg/client-config.ts'
import type { Db } from '../../lib/pg/db.ts'
import { missingSettings, reconnectSentence } from '../../lib/pg/pooler.ts'
import { type Finding, failed, ok, warning } from './finding.ts'

export async function checkPooler(db: Db, config: Config): Promise<Finding[]> {
  if (!config.directDatabaseUrl) return []
  const { query, release } = await db.connect()
  try {
    const [direct] = await query(SAME)
    const [pooled] = await db.query(SAME)
    if (direct!.same !== pooled!.same) {
      const message = 'DIRECT_DATABASE_URL and DATABASE_URL lead to different databases.'
      return [failed('pooler', message, 'Set both to one database, DIRECT_DATABASE_URL without the pooler.')]
    }
  } finally {
    release()
  }
  const missing = await missingSettings(db.query, settingsOf(config))
  if (missing.length > 0) return [warning('pooler', reconnectSentence(missing), 'Do that, then run the doctor again.')]
  return [ok('pooler', 'Both addresses lead to the same database.')]
}

// The start time of the server and the number of the database identify it.
const SAME = `
  select concat_ws(' ', extract(epoch from pg_postmaster_start_time()), oid) as same from pg_database where datname = current_database()`
