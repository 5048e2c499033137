// Moves the clock of a test's database, as an operator does who corrects it.
import { openDb } from '../../src/lib/pg/db.ts'
import { until } from './cluster.ts'

/** Lets the database's clock be ahead of the time by an interval; `undefined` sets it right. Every session of it ends. */
export async function setDatabaseClock(url: string, ahead: string | undefined): Promise<void> {
  const outside = openDb({ url, applicationName: 'outside', connections: 1, readConnections: 0 })
  try {
    const [row] = await outside.query('select current_database() as name')
    const setting = ahead === undefined ? 'reset tundish.clock_offset' : `set tundish.clock_offset = '${ahead}'`
    await outside.query(`alter database ${row!.name} ${setting}`)
    // Sessions take the offset when they begin.
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
