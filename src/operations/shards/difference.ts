// What one copy of an organization has and another one on another shard has not.
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { identifier } from '../backup/sql-names.ts'
import { type Connection, countRows } from './connection.ts'
import { projectsOf } from './hold.ts'
import { type TenantTable, tenantTables } from './tenant-tables.ts'

export interface Copy {
  rows: number
  /** The latest of the times of its records; null if it has none. */
  newestChange: string | null
}

/** Of the charges and refunds of a copy. */
export interface Lacking {
  /** Orders that the other copy lacks; `ids` has the first of them. */
  orders: { count: number; ids: string[] }
  /** Charges and refunds that were made, or may have been, and that the other copy lacks or has with another outcome. */
  charges: number
  refunds: number
}

export interface Difference extends Lacking {
  copy: Copy
  other: Copy
  /** The tables that have another number of rows in the other copy. */
  tables: { table: string; rows: number; others: number }[]
  /** People who were erased in this copy only. */
  erasures: number
}

const MOST_IDS = 10
// The times of records, of which each table has some.
const TIMES = ['updated_at', 'created_at', 'settled_at', 'trx_created_at', 'erased_at', 'attempted_at']

/** Call it in a transaction on each. */
export async function differenceOf(copy: Connection, other: Connection, organization: string): Promise<Difference> {
  const [mine, theirs] = [await readCopy(copy, organization), await readCopy(other, organization)]
  const tables = [...mine.counts].map(([table, rows]) => ({ table, rows, others: theirs.counts.get(table) ?? 0 }))
  return {
    copy: mine.copy,
    other: theirs.copy,
    tables: tables.filter(({ rows, others }) => rows !== others),
    ...(await lackingOf(copy, other, organization)),
    erasures: await erasedHereOnly(copy, other, organization),
  }
}

/** Call it in a transaction on the other one. */
export async function lackingOf(copy: Connection, other: Connection, organization: string): Promise<Lacking> {
  const orders = await lacking(copy, other, organization, 'orders', 'order_id')
  const refunds = await lacking(copy, other, organization, 'refunds', 'refund_id')
  return { orders: { count: orders.count, ids: orders.ids }, charges: orders.made, refunds: refunds.made }
}

async function readCopy(connection: Connection, organization: string) {
  const projects = await projectsOf(connection, organization)
  const tables = await tenantTables(connection.query, organization, projects)
  const counts = await countRows(connection, tables)
  const rows = [...counts.values()].reduce((sum, n) => sum + n, 0)
  return { counts, copy: { rows, newestChange: await newestChange(connection, tables) } }
}

async function newestChange({ query }: Connection, tables: readonly TenantTable[]): Promise<string | null> {
  const times = tables.flatMap(({ name, columns, condition }) =>
    TIMES.filter((time) => columns.includes(time)).map(
      (time) => `(select max(${time}) from ${identifier(name)} where ${condition})`,
    ),
  )
  const [row] = await query(`
    select to_char(greatest(${times.join(', ')}) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at`)
  return row!.at!
}

/** A charge that the other copy has in progress is found there too. */
async function lacking(
  copy: Connection,
  other: Connection,
  organization: string,
  table: 'orders' | 'refunds',
  id: string,
): Promise<{ count: number; ids: string[]; made: number }> {
  const mine = `${table}_of_copy`
  await other.query(`create temporary table ${mine} (id uuid, status text) on commit drop`)
  const rows = `select ${id}, status from ${table} where organization_id = ${pg.escapeLiteral(organization)}`
  await copyInto(copy, other, rows, mine)
  const [row] = await other.query(
    `with found as materialized (
       select m.id, m.status, o.status as there
       from ${mine} m left join ${table} o on o.organization_id = $1 and o.${id} = m.id)
     select count(*) filter (where there is null) as n,
       count(*) filter (where there is null and status in ('succeeded', 'processing')
         or status = 'succeeded' and there not in ('succeeded', 'processing')) as made,
       (select json_agg(id) from (select id from found where there is null order by id limit ${MOST_IDS}) first) as ids
     from found`,
    [organization],
  )
  return { count: Number(row!.n), ids: JSON.parse(row!.ids ?? '[]'), made: Number(row!.made) }
}

async function erasedHereOnly(copy: Connection, other: Connection, organization: string): Promise<number> {
  await other.query(`
    create temporary table erasures_of_copy (project_id text collate "C", profile_id text collate "C") on commit drop`)
  const projects = `select id from projects where organization_id = ${pg.escapeLiteral(organization)}`
  const rows = `select project_id, profile_id from erasures where project_id in (${projects})`
  await copyInto(copy, other, rows, 'erasures_of_copy')
  const [row] = await other.query(`
    select count(*) as n from erasures_of_copy where not exists (select from erasures e
      where e.project_id = erasures_of_copy.project_id and e.profile_id = erasures_of_copy.profile_id)`)
  return Number(row!.n)
}

const copyInto = (from: Connection, to: Connection, rows: string, table: string): Promise<void> =>
  pipeline(from.client.query(copyTo(`copy (${rows}) to stdout`)), to.client.query(copyFrom(`copy ${table} from stdin`)))
