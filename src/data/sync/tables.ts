// The tables of a copy: their columns, taken from the records' own shapes, and the rows of a changed record.
import type { Change } from '../../../clients/js/src/changes.ts'
import { creditEntryExport } from '../../core/records/credit-entry.ts'
import { experiment } from '../../core/records/experiment.ts'
import { funnel } from '../../core/records/funnel.ts'
import { product } from '../../core/records/product.ts'
import { profile } from '../../core/records/profile.ts'
import { replyDetail, sessionReplies } from '../../core/records/reply.ts'
import { session } from '../../core/records/session.ts'
import { subscriptionDetail } from '../../core/records/subscription.ts'
import { transactionExport } from '../../core/records/transaction.ts'
import { JsonNumber } from '../../lib/json/read.ts'
import type { Schema } from '../../lib/shape/schema.ts'
import type { Shape } from '../../lib/shape/shape.ts'

export type ColumnType = 'text' | 'integer' | 'decimal' | 'boolean' | 'instant' | 'json'

export interface Column {
  name: string
  type: ColumnType
  /** The path of its value in the item. */
  path: readonly string[]
}

/** Values by column; of a `json` column the value itself, not its text. */
export type Row = Record<string, unknown>

export interface Table {
  name: string
  /** The list whose items it is made of. */
  list: Change['list']
  /** The columns that identify a row. */
  key: readonly string[]
  columns: readonly Column[]
  /** The column by which the rows of an item are replaced together. */
  group: string
  /** The value of that column, and the rows of the item. */
  rows(item: unknown): [group: string, rows: Row[]]
}

/** One table per list, two of credits: objects as columns (`profile_email`), lists and free-form objects as JSON. */
export const TABLES: readonly Table[] = [
  plain('funnels', funnel),
  plain('experiments', experiment),
  plain('products', product),
  plain('profiles', profile),
  plain('sessions', session),
  repliesTable(),
  plain('subscriptions', subscriptionDetail),
  plain('transactions', transactionExport),
  ...creditTables(),
]

export const tablesOf = Map.groupBy(TABLES, ({ list }) => list)

function plain(name: Change['list'], shape: Shape): Table {
  const columns = columnsOf(shape.schema)
  return {
    name,
    list: name,
    key: ['id'],
    columns,
    group: 'id',
    rows: (item) => [(item as { id: string }).id, [rowOf(columns, item)]],
  }
}

/** A row for each reply, with the session's columns; the replies of a session are replaced together. */
function repliesTable(): Table {
  const ofSession = columnsOf(sessionReplies.schema).filter(({ name }) => name !== 'replies')
  const ofReply = columnsOf(replyDetail.schema).map((column) =>
    column.name === 'state_value' ? { ...column, name: 'value' } : column,
  )
  return {
    name: 'replies',
    list: 'replies',
    key: ['session_id', 'screen_id', 'element_id'],
    columns: [...ofSession, ...ofReply],
    group: 'session_id',
    rows(item) {
      const shared = rowOf(ofSession, item)
      const { session_id, replies } = item as { session_id: string; replies: unknown[] }
      return [session_id, replies.map((reply) => ({ ...shared, ...rowOf(ofReply, reply) }))]
    },
  }
}

/** The entries, and the sums of each customer and unit, which every entry has as they were when it was read. */
function creditTables(): Table[] {
  const columns = columnsOf(creditEntryExport.schema)
  const isTotal = ({ path }: Column) => path[0] === 'totals'
  const entries = columns.filter((column) => !isTotal(column))
  const shared = ['external_id', 'unit', 'profile_id', 'updated_at']
  const balances = [
    ...shared.map((name) => entries.find((column) => column.name === name)!),
    ...columns.filter(isTotal).map((column) => ({ ...column, name: column.path[1]! })),
  ]
  const list = 'credit_entries'
  return [
    {
      name: list,
      list,
      key: ['entry_id'],
      columns: entries,
      group: 'entry_id',
      rows: (item) => [(item as { entry_id: string }).entry_id, [rowOf(entries, item)]],
    },
    {
      name: 'credit_balances',
      list,
      key: ['account_id'],
      columns: balances,
      group: 'account_id',
      rows(item) {
        const row = rowOf(balances, item)
        return [row['account_id'] as string, [row]]
      },
    },
  ]
}

function columnsOf(schema: Schema, path: readonly string[] = []): Column[] {
  const properties = Object.entries(schema.properties as Record<string, Schema>)
  const flat = properties.flatMap(([name, property]) => {
    const place = [...path, name]
    const isObject = property.properties !== undefined
    return isObject ? columnsOf(property, place) : [{ name: place.join('_'), type: typeOf(property), path: place }]
  })
  // A record may have both `funnel_id` and an object `funnel` with an `id`, which are the same value: the shorter path is used.
  const byName = new Map<string, Column>()
  for (const column of flat.toSorted((a, b) => b.path.length - a.path.length)) byName.set(column.name, column)
  return flat.filter((column) => byName.get(column.name) === column)
}

function typeOf({ type, format }: Schema): ColumnType {
  const [only, ...more] = [type].flat().filter((one) => one !== 'null')
  if (more.length > 0) return 'json'
  if (only === 'string') return format === 'date-time' ? 'instant' : 'text'
  if (only === 'integer' || only === 'boolean') return only
  return only === 'number' ? 'decimal' : 'json'
}

/** A field that the server's version does not have is null. A number with more digits than a double keeps is exact only in JSON. */
function rowOf(columns: readonly Column[], item: unknown): Row {
  return Object.fromEntries(
    columns.map(({ name, type, path }) => {
      let value: unknown = item
      for (const step of path) value = (value as Row | null | undefined)?.[step]
      return [name, type !== 'json' && value instanceof JsonNumber ? Number(value.text) : (value ?? null)]
    }),
  )
}
