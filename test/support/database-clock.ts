// Moves the clock of a test's database forward and back.
import { openDb } from '../../src/lib/pg/db.ts'
import { until } from './cluster.ts'

/** Sets the database's clock ahead by an interval; `undefined` corrects it. Ends all sessions of the database. */
export async function setDatabaseClock(url: string, ahead: string | undefined): Promise<void> {
  const outside = openDb({ url, applicationName: 'outside', connections: 1, readConnections: 0 })
  try {
    const [row] = await outside.query('select current_database() as name')
    const setting = ahead === undefined ? 'reset tundish.clock_offset' : `set tundish.clock_offset = '${ahead}'`
    await outside.query(`alter database ${row!.name} ${setting}`)
    // A session reads the offset when it begins.
    const ended = await outside.query(
      `select pid, pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid()`,
    )
    const left = () =>
      outside.query('select from pg_stat_activity where pid = any($1::int[])', [ended.map(({ pid }) => pid!)])
    await until('the sessions to end', async () => (await left()).length === 0)
  } finally {
    await outside.close()
  }
}
