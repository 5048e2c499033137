// The tables to back up, read from PostgreSQL's catalogue, so that tables of later migrations are included.
import { refuseBeforeReading } from '../../lib/pg/before-reading.ts'
import type { Query } from '../../lib/pg/types.ts'
import { identifier, qualified } from './sql-names.ts'

export interface Table {
  name: string
  /** The stored columns, in order. */
  columns: string[]
}

export interface Catalogue {
  schema: string
  migrations: { version: number; name: string }[]
  /** A table comes after those it refers to. */
  tables: Table[]
  sequences: string[]
}

/** The list of applied migrations is not data: a restore writes its own. */
export const MIGRATIONS_TABLE = 'schema_migrations'

/** Returns undefined when the database has no tables of Tundish. Throws a `UsageError` for a database from before 1.0. */
export async function readCatalogue(query: Query): Promise<Catalogue | undefined> {
  const [place] = await query(`select current_schema() as schema, to_regclass($1) is not null as is_ours`, [
    MIGRATIONS_TABLE,
  ])
  if (place!.is_ours !== 't') return undefined
  const rows = await query(`select version, name from ${MIGRATIONS_TABLE} order by version`)
  const migrations = rows.map(({ version, name }) => ({ version: Number(version), name: name! }))
  refuseBeforeReading(migrations)
  const tables = await query<{ name: string; columns: string; refers_to: string }>(TABLES)
  const sequences = await query<{ name: string }>(SEQUENCES)
  return {
    schema: place!.schema!,
    migrations,
    tables: inOrder(
      tables.map(({ name, columns, refers_to }) => ({
        name,
        columns: JSON.parse(columns) as string[],
        refersTo: JSON.parse(refers_to) as string[],
      })),
    ),
    sequences: sequences.map(({ name }) => name),
  }
}

export const lockTables = ({ schema, tables }: Catalogue, mode: 'access share' | 'access exclusive') =>
  `lock table ${tables.map(({ name }) => qualified(schema, name)).join(', ')} in ${mode} mode`

export const columnList = (columns: string[]) => columns.map(identifier).join(', ')

// Tables of this schema that belong to no extension; unlogged tables may be lost at any time and are left out. Of a partitioned
// table the parent, not its partitions; generated columns are computed again.
const OURS = `
  c.relpersistence = 'p' and c.relnamespace = (select oid from pg_namespace where nspname = current_schema())
  and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')`

const TABLES = `
  select c.relname as name, json_agg(a.attname order by a.attnum) as columns,
    (select coalesce(json_agg(distinct r.relname), '[]') from pg_constraint k join pg_class r on r.oid = k.confrelid
     where k.conrelid = c.oid and k.contype = 'f') as refers_to
  from pg_class c
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
  where ${OURS} and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> '${MIGRATIONS_TABLE}'
  group by c.oid, c.relname order by c.relname`

const SEQUENCES = `select c.relname as name from pg_class c where ${OURS} and c.relkind = 'S' order by c.relname`

function inOrder(tables: (Table & { refersTo: string[] })[]): Table[] {
  const names = new Set(tables.map(({ name }) => name))
  const placed = new Set<string>()
  const ordered: Table[] = []
  let waiting = tables
  while (waiting.length > 0) {
    const free = waiting.filter(({ name, refersTo }) =>
      refersTo.every((other) => other === name || placed.has(other) || !names.has(other)),
    )
    // Tables with circular references keep their order: our own restore does not depend on it.
    const next = free.length > 0 ? free : waiting
    for (const { name, columns } of next) {
      placed.add(name)
      ordered.push({ name, columns })
    }
    waiting = waiting.filter(({ name }) => !placed.has(name))
  }
  return ordered
}
