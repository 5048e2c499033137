// A copy in a PostgreSQL database: tables in the schema `tundish`, each batch and the state in one transaction.
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { Client } from '../../lib/pg/client.ts'
import { COPY_NULL, copyText } from '../../lib/pg/copy-text.ts'
import { causeOf } from '../../lib/pg/errors.ts'
import { connectionOf } from '../../lib/pg/hosts.ts'
import { inTransaction } from '../../lib/pg/in-transaction.ts'
import { type Column, type ColumnType, TABLES, type Table } from './tables.ts'
import {
  beginAgain,
  CopyUnreachable,
  type Groups,
  LATER_COLUMNS,
  lackedTable,
  movedByAnother,
  quoted,
  type State,
  sameState,
  type Target,
} from './target.ts'

const SCHEMA = 'tundish'

const TYPES: Record<ColumnType, string> = {
  text: 'text',
  integer: 'bigint',
  decimal: 'double precision',
  boolean: 'boolean',
  instant: 'timestamptz',
  json: 'jsonb',
}

export function postgresTarget(url: string): Target {
  let client = clientFor(url)

  async function state(): Promise<State | undefined> {
    const { rows } = await client.query(`select url, since, cursor, records, ${LATER_COLUMNS} from ${SCHEMA}.sync`)
    const [found] = rows as (Omit<State, 'records'> & { records: string })[]
    return found && { ...found, records: Number(found.records) }
  }

  /** Does the work and stores the new state in one transaction, unless another sync has stored one. */
  async function change(before: State | undefined, after: State, work: () => Promise<void>): Promise<void> {
    await transaction(client, async () => {
      // The whole table, because there may be no row yet. It can still be read.
      await client.query(`lock table ${SCHEMA}.sync in share row exclusive mode`)
      if (!sameState(await state(), before)) throw movedByAnother()
      await work()
      await storeState(client, after)
    })
  }

  return {
    async open() {
      // One that became unavailable cannot be used again. It may still be connected, to a server that is read-only or full.
      client.end().catch(() => {})
      client = clientFor(url)
      try {
        await client.connect()
      } catch (error) {
        throw new CopyUnreachable(`The database of the copy cannot be reached (${causeOf(error)}).`, { cause: error })
      }
      await transaction(client, () => makeTables(client))
    },
    state,
    store: (batch, before, after) =>
      change(before, after, async () => {
        for (const [table, groups] of batch) await storeRows(client, table, groups)
      }),
    forget: (voidFrom, before, after) =>
      change(before, after, async () => {
        for (const table of TABLES)
          await client.query(`delete from ${placeOf(table)} where updated_at >= $1`, [voidFrom])
      }),
    async complete() {},
    close: () => client.end(),
  }
}

function clientFor(url: string): pg.Client {
  const client = new Client({ ...connectionOf(url), application_name: 'tundish sync' })
  // A connection that breaks between two statements fails the next one; without a listener the program would end here.
  client.on('error', () => {})
  return client
}

const transaction = (client: pg.Client, work: () => Promise<void>) => inTransaction((text) => client.query(text), work)

const placeOf = ({ name }: Table) => `${SCHEMA}.${quoted(name)}`

/**
 * Makes the schema, the tables and the columns that are missing. Nothing is altered without need: that would wait for the queries
 * of others, and theirs would wait behind it. For a schema that exists, a role needs no right on the database.
 */
async function makeTables(client: pg.Client): Promise<void> {
  // One sync at a time.
  await client.query(`select pg_advisory_xact_lock(hashtext('tundish sync'))`)
  const schemas = await client.query('select from pg_namespace where nspname = $1', [SCHEMA])
  if (schemas.rowCount === 0) await client.query(`create schema ${SCHEMA}`)
  const known = await readColumns(client)
  if (!known.has('sync'))
    await client.query(`
      create table ${SCHEMA}.sync (
        one int primary key default 1 check (one = 1), url text not null, since text, cursor text, records bigint not null)`)
  for (const name of LATER_COLUMNS)
    if (!known.get('sync')?.has(name)) await client.query(`alter table ${SCHEMA}.sync add column ${name} text`)
  for (const table of TABLES) {
    const columns = known.get(table.name)
    const definitionOf = ({ name, type }: Column) => `${quoted(name)} ${TYPES[type]}`
    const missing = table.columns.filter(({ name }) => !columns?.has(name)).map(definitionOf)
    if (!columns) {
      const key = table.key.map(quoted)
      await client.query(`create table ${placeOf(table)} (${missing.join(', ')}, primary key (${key}))`)
    } else if (missing.length > 0) {
      await client.query(`alter table ${placeOf(table)} ${missing.map((one) => `add column ${one}`).join(', ')}`)
    }
  }
  if (lackedTable(known)) await client.query(beginAgain(`${SCHEMA}.sync`))
}

/** The columns of the tables in the schema. */
async function readColumns(client: pg.Client): Promise<Map<string, Set<string>>> {
  const { rows } = await client.query(
    'select table_name, json_agg(column_name) as columns from information_schema.columns where table_schema = $1 group by 1',
    [SCHEMA],
  )
  return new Map(rows.map(({ table_name, columns }) => [table_name, new Set(columns as string[])]))
}

async function storeState(client: pg.Client, state: State): Promise<void> {
  const { url, since, cursor, records } = state
  await client.query(
    `insert into ${SCHEMA}.sync (url, since, cursor, records, ${LATER_COLUMNS}) values ($1, $2, $3, $4, $5, $6)
     on conflict (one) do update set (url, since, cursor, records, ${LATER_COLUMNS}) = row($1, $2, $3, $4, $5, $6)`,
    [url, since, cursor, records, ...LATER_COLUMNS.map((name) => state[name] ?? null)],
  )
}

/** By COPY: half the work of an insert, for PostgreSQL and for this process. */
async function storeRows(client: pg.Client, table: Table, groups: Groups): Promise<void> {
  const replaced = [...groups.keys()]
  await client.query(`delete from ${placeOf(table)} where ${quoted(table.group)} = any($1)`, [replaced])
  const names = table.columns.map(({ name }) => quoted(name))
  const sink = client.query(copyFrom(`copy ${placeOf(table)} (${names}) from stdin (encoding 'UTF8')`))
  await pipeline(Readable.from(copyLines(table, groups)), sink)
}

// The length of a piece of text: sent row by row, each row would be a message.
const PART = 64 * 1024

function* copyLines({ columns }: Table, groups: Groups): Iterable<string> {
  let part = ''
  for (const rows of groups.values())
    for (const row of rows) {
      part += `${columns.map((column) => copyValue(column, row[column.name])).join('\t')}\n`
      if (part.length < PART) continue
      yield part
      part = ''
    }
  if (part !== '') yield part
}

function copyValue({ type }: Column, value: unknown): string {
  if (value === null || value === undefined) return COPY_NULL
  return copyText(type === 'json' ? JSON.stringify(value) : String(value))
}
