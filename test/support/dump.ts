// The whole content of a database as one text, for tests that search it for data that must not be there.
import type { Db } from '../../src/lib/pg/db.ts'

// The rate buckets of keys change with every request.
const USAGE = 'key_usage'

/** Every row of every table of ours as `table: {columns as JSON}` lines. */
export async function dump(db: Db): Promise<string> {
  const tables = await db.query(
    `select table_name as name from information_schema.tables
     where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE' and table_name <> '${USAGE}'
     order by 1`,
  )
  const lines: string[] = []
  for (const { name } of tables) {
    const rows = await db.query(`select row_to_json(t)::text as row from "${name}" t`)
    for (const { row } of rows) lines.push(`${name}: ${row}`)
  }
  return lines.join('\n')
}

/** The lines that only one of two dumps has, except those of some tables. */
export function differences(before: string, after: string, except: string[] = []): string[] {
  const [had, has] = [new Set(before.split('\n')), new Set(after.split('\n'))]
  const changed = [...[...had].filter((line) => !has.has(line)), ...[...has].filter((line) => !had.has(line))]
  return changed.filter((line) => !except.includes(line.slice(0, line.indexOf(':'))))
}
