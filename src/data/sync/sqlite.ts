// A copy in a SQLite file: each batch and the state in one transaction.
import { chmodSync, existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { readExact } from '../../lib/json/exact.ts'
import { type ColumnType, type Row, TABLES, type Table } from './tables.ts'
import {
  beginAgain,
  type Groups,
  LATER_COLUMNS,
  lackedTable,
  movedByAnother,
  quoted,
  refuseOthersTables,
  type State,
  sameState,
  type Target,
} from './target.ts'

const TYPES: Record<ColumnType, string> = {
  text: 'text',
  integer: 'integer',
  decimal: 'real',
  boolean: 'integer',
  instant: 'text',
  json: 'text',
}

export interface SqliteTarget extends Target {
  /** All rows of a table in the order of its key. */
  rows(table: Table): Iterable<Row>
  /** The tables that changed since `written` was called for them. */
  changed(): Set<string>
  written(table: Table): void
}

export function sqliteTarget(path: string): SqliteTarget {
  const isNew = !existsSync(path)
  // A relative path may begin with `file:`, which would be read as a URI.
  const db = new DatabaseSync(resolve(path))
  // It holds personal data.
  if (isNew) chmodSync(path, 0o600)
  // `secure_delete` overwrites deleted data in the file.
  db.exec(
    'pragma journal_mode = wal; pragma synchronous = full; pragma secure_delete = on; pragma busy_timeout = 10000',
  )
  const writes = new Map<Table, { remove: StatementSync; insert: StatementSync }>()

  function state(): State | undefined {
    const text = `select url, since, cursor, records, ${LATER_COLUMNS} from tundish_sync`
    return db.prepare(text).get() as State | undefined
  }

  function storeRows(table: Table, groups: Groups): void {
    const { remove, insert } = writes.get(table)!
    for (const [group, rows] of groups) {
      remove.run(group)
      for (const row of rows) insert.run(...table.columns.map(({ name, type }) => stored(row[name], type)))
    }
    db.prepare('insert or ignore into tundish_changed (name) values (?)').run(table.name)
  }

  function change(before: State | undefined, after: State, work: () => void): void {
    db.exec('begin immediate')
    try {
      if (!sameState(state(), before)) throw movedByAnother()
      work()
      const { url, since, cursor, records } = after
      const text = `insert or replace into tundish_sync (one, url, since, cursor, records, ${LATER_COLUMNS}) values (1, ?, ?, ?, ?, ?, ?)`
      db.prepare(text).run(url, since, cursor, records, ...LATER_COLUMNS.map((name) => after[name] ?? null))
      db.exec('commit')
    } catch (error) {
      if (db.isTransaction) db.exec('rollback')
      throw error
    }
  }

  return {
    async open() {
      const known = readNames(db)
      refuseOthersTables(path, known)
      db.exec('begin immediate')
      db.exec(`
        create table if not exists tundish_sync (
          one integer primary key check (one = 1), url text not null, since text, cursor text, records integer not null);
        create table if not exists tundish_changed (name text primary key)`)
      const columns = readColumns(db, 'tundish_sync')
      for (const name of LATER_COLUMNS)
        if (!columns.has(name)) db.exec(`alter table tundish_sync add column ${name} text`)
      for (const table of TABLES) makeTable(db, table)
      if (lackedTable(known)) db.exec(beginAgain('tundish_sync'))
      db.exec('commit')
      for (const table of TABLES) {
        const names = table.columns.map(({ name }) => quoted(name))
        writes.set(table, {
          remove: db.prepare(`delete from ${quoted(table.name)} where ${quoted(table.group)} = ?`),
          insert: db.prepare(`insert into ${quoted(table.name)} (${names}) values (${names.map(() => '?')})`),
        })
      }
    },
    state: async () => state(),
    async store(batch, before, after) {
      change(before, after, () => {
        for (const [table, groups] of batch) storeRows(table, groups)
      })
    },
    async forget(voidFrom, before, after) {
      change(before, after, () => {
        for (const { name } of TABLES) {
          db.prepare(`delete from ${quoted(name)} where updated_at >= ?`).run(voidFrom)
          db.prepare('insert or ignore into tundish_changed (name) values (?)').run(name)
        }
      })
    },
    async complete() {
      // The log still contains deleted data.
      db.exec('pragma wal_checkpoint(truncate)')
    },
    async close() {
      db.close()
    },
    *rows(table) {
      const names = table.columns.map(({ name }) => quoted(name))
      const order = table.key.map(quoted)
      const found = db.prepare(`select ${names} from ${quoted(table.name)} order by ${order}`).iterate()
      for (const row of found) yield restored(table, row as Row)
    },
    changed: () =>
      new Set(
        db
          .prepare('select name from tundish_changed')
          .all()
          .map(({ name }) => String(name)),
      ),
    written: ({ name }) => void db.prepare('delete from tundish_changed where name = ?').run(name),
  }
}

function readNames(db: DatabaseSync): Set<string> {
  const rows = db.prepare("select name from sqlite_master where type in ('table', 'view')").all()
  return new Set(rows.map(({ name }) => String(name)))
}

/** Makes the table, or adds the columns that a copy of an older version lacks. */
function makeTable(db: DatabaseSync, { name, columns, key }: Table): void {
  const definitions = columns.map((column) => `${quoted(column.name)} ${TYPES[column.type]}`)
  db.exec(`create table if not exists ${quoted(name)} (${definitions}, primary key (${key.map(quoted)}))`)
  const known = readColumns(db, name)
  for (const [n, column] of columns.entries()) {
    if (!known.has(column.name)) db.exec(`alter table ${quoted(name)} add column ${definitions[n]}`)
  }
}

function readColumns(db: DatabaseSync, table: string): Set<string> {
  const rows = db.prepare('select name from pragma_table_info(?)').all(table)
  return new Set(rows.map(({ name }) => String(name)))
}

function stored(value: unknown, type: ColumnType): SQLInputValue {
  if (value === null || value === undefined) return null
  if (type === 'json') return JSON.stringify(value)
  return type === 'boolean' ? Number(value) : (value as SQLInputValue)
}

function restored({ columns }: Table, row: Row): Row {
  return Object.fromEntries(
    columns.map(({ name, type }) => {
      const value = row[name]
      if (value === null) return [name, null]
      if (type === 'json') return [name, readExact(value as string)]
      return [name, type === 'boolean' ? value === 1 : value]
    }),
  )
}
