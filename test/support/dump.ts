// Everything a database holds, as one text: for tests that look for what must not be there.
import type { Db } from '../../src/lib/db.ts'

/** Every row of every table of ours as `table: {columns as JSON}` lines. */
export async function dump(db: Db): Promise<string> {
  const tables = await db.query(
    `select table_name as name from information_schema.tables
     where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE' order by 1`,
  )
  const lines: string[] = []
  for (const { name } of tables) {
    const rows = await db.query(`select row_to_json(t)::text as row from "${name}" t`)
    for (const { row } of rows) lines.push(`${name}: ${row}`)
  }
  return lines.join('\n')
}
