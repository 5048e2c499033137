// Prepares the tables for loading a backup: empty, of the backup's version, and without indexes and foreign keys.
import { Refusal } from '../../lib/errors.ts'
import { isBeforeReading } from '../../lib/pg/before-reading.ts'
import { type Migration, migrations } from '../../lib/pg/migrate.ts'
import type { Query } from '../../lib/pg/types.ts'
import { type Catalogue, lockTables, readCatalogue } from './catalogue.ts'
import type { Header } from './format.ts'
import type { Session } from './session.ts'
import { qualified } from './sql-names.ts'

/** The migrations that the backup has, and those to run once its rows are loaded. */
export interface SchemaState {
  applied: Migration[]
  missing: Migration[]
}

/** Throws a `Refusal` when the backup has migrations that this program does not know. */
export async function schemaOf(header: Header): Promise<SchemaState> {
  const known = await migrations()
  const had = isBeforeReading(header.migrations) ? asReading(header, known) : header.migrations
  const applied = known.filter((one) => had.some((other) => isSame(one, other)))
  if (applied.length < had.length) {
    const newer = had.filter((one) => !known.some((other) => isSame(one, other)))
    const names = newer.map(({ version, name }) => `${version} (${name})`).join(', ')
    throw new Refusal(
      `The backup was made by Tundish ${header.tundish}, whose migrations ${names} are unknown here: restore it with that version, or with a newer one if that had migrated the database.`,
    )
  }
  return { applied, missing: known.filter((one) => !applied.includes(one)) }
}

// The files that the migrations before 1.0 were put together into, and the last of those migrations.
const READING = 10
const LAST_BEFORE = { version: 81, name: 'charge_caps' }

/** The migrations of a backup from before 1.0. Their tables are those of the reading if it has the last of them. */
function asReading({ migrations: had }: Header, known: Migration[]): { version: number; name: string }[] {
  if (!had.some((one) => isSame(one, LAST_BEFORE)))
    throw new Refusal(
      `The backup was made by a Tundish before 1.0 and before its migration ${LAST_BEFORE.version} (${LAST_BEFORE.name}): start the last program before 1.0 on that database, and back it up again.`,
    )
  const later = had.filter(({ version }) => version > LAST_BEFORE.version)
  return [...known.filter(({ version }) => version <= READING), ...later]
}

const isSame = (one: { version: number; name: string }, other: { version: number; name: string }) =>
  one.version === other.version && one.name === other.name

// Tables with rows in an unused database: those of migrations, of the first start, and of a server that runs on it.
const NOT_DATA = new Set(['instance', 'audit_head', 'commit_beat', 'failovers', 'figure_programs', 'replica_heartbeat'])

/** Locks every table exclusively, and returns those that have rows. */
export async function lockAndFindData(query: Query): Promise<{ present: Catalogue; filled: string[] }> {
  const present = (await readCatalogue(query))!
  await query(lockTables(present, 'access exclusive'))
  return { present, filled: await tablesWithRows(query, present) }
}

/** The tables that have rows, without a lock; none if the database has no tables of Tundish. */
export async function findData(query: Query): Promise<string[]> {
  const present = await readCatalogue(query)
  return present ? tablesWithRows(query, present) : []
}

async function tablesWithRows(query: Query, present: Catalogue): Promise<string[]> {
  const filled: string[] = []
  for (const { name } of present.tables) {
    if (NOT_DATA.has(name)) continue
    const rows = await query(`select 1 from ${qualified(present.schema, name)} limit 1`)
    if (rows.length > 0) filled.push(name)
  }
  return filled
}

/**
 * Empties the tables. For an older backup they are created again in the backup's version: later migrations expect the rows
 * of that version, and run once those are loaded.
 */
export async function emptyTables(
  { query, client }: Pick<Session, 'query' | 'client'>,
  present: Catalogue,
  { applied, missing }: SchemaState,
): Promise<Catalogue> {
  if (present.migrations.length > applied.length + missing.length)
    throw new Refusal('This database was migrated by a newer Tundish: restore the backup with that version.')
  if (missing.length > 0) {
    const drops = await query<{ statement: string }>(DROP_EVERYTHING)
    for (const { statement } of drops) await query(statement)
    // A migration has several statements, which only a query without parameters may have.
    for (const { sql } of applied) await client.query(sql)
  }
  const { schema, tables, ...rest } = (await readCatalogue(query))!
  await query(`truncate ${tables.map(({ name }) => qualified(schema, name)).join(', ')}`)
  return { schema, tables, ...rest }
}

/** Rows load faster into tables without secondary indexes, and in any order without foreign keys. Returns the function that creates both again. */
export async function dropIndexes(query: Query): Promise<() => Promise<void>> {
  const found = await query<{ drop: string; create: string }>(INDEXES)
  for (const { drop } of found) await query(drop)
  return async () => {
    for (const { create } of found.toReversed()) await query(create)
  }
}

export async function runMissing({ client }: Pick<Session, 'client'>, { missing }: SchemaState): Promise<void> {
  for (const { sql } of missing) await client.query(sql)
}

const HERE = '(select oid from pg_namespace where nspname = current_schema())'
const ownedByExtension = (catalogue: string, oid: string) =>
  `exists (select from pg_depend d where d.classid = '${catalogue}'::regclass and d.objid = ${oid} and d.deptype = 'e')`

// The list of migrations is kept: in the end all of them have run. Sequences come after the tables: one of an identity column is dropped
// with its table, and not by itself. The catalogue has them in any order.
const DROP_EVERYTHING = `
  select statement from (
    select (c.relkind = 'S')::int as turn, format('drop %s if exists %s cascade', case c.relkind when 'v' then 'view'
      when 'm' then 'materialized view' when 'S' then 'sequence' else 'table' end, c.oid::regclass) as statement
    from pg_class c where c.relnamespace = ${HERE} and c.relkind in ('r', 'p', 'v', 'm', 'S')
      and c.relname <> 'schema_migrations' and not ${ownedByExtension('pg_class', 'c.oid')}
    union all
    select 2, format('drop routine if exists %s cascade', p.oid::regprocedure)
    from pg_proc p where p.pronamespace = ${HERE} and not ${ownedByExtension('pg_proc', 'p.oid')}
    union all
    select 2, format('drop type if exists %s cascade', t.oid::regtype)
    from pg_type t where t.typnamespace = ${HERE} and t.typtype in ('e', 'd', 'r')
      and not ${ownedByExtension('pg_type', 't.oid')}
  ) everything order by turn`

// Foreign keys are dropped first and restored last. Those of a partition are dropped with its parent's.
const INDEXES = `
  select "drop", "create" from (
    select 1 as turn, format('alter table %s drop constraint %I', conrelid::regclass, conname) as "drop",
      format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) as "create"
    from pg_constraint where contype = 'f' and conparentid = 0 and connamespace = ${HERE}
    union all
    select 2, format('drop index %s', i.indexrelid::regclass), pg_get_indexdef(i.indexrelid)
    from pg_index i join pg_class c on c.oid = i.indexrelid
    where c.relnamespace = ${HERE} and not c.relispartition
      and not exists (select from pg_constraint k where k.conindid = i.indexrelid)
      and not ${ownedByExtension('pg_class', 'i.indrelid')}
  ) of_either order by turn`
