// Serves lists: one declaration → its statements, its pages, its totals, and the walk that returns every row once.

import { ApiError } from '../lib/errors.ts'
import type { JsonBytes } from '../lib/json/buffer.ts'
import type { Row } from '../lib/pg/row-bytes.ts'
import type { Param, Statement } from '../lib/pg/types.ts'
import type { RowList } from '../lib/shape/shape.ts'
import { isId } from '../lib/text.ts'
import { instantFromPg } from '../lib/time.ts'
import { type Position, readCursor, writeCursor } from './cursor.ts'
import type { Filter, List } from './list.ts'
import type { Source } from './source.ts'

export interface Page {
  json: JsonBytes
  horizon?: string
}

const SYNC_FILTERS = ['updated_at.from', 'updated_at.to'] as const
// What is prepared by name; for a limit between them the next larger statement is stopped early.
const PREPARED_LIMITS = [20, 50, 100, 200, 250, 500]

/** Serves one page of a project's list. `query` has been read by `listQuery`. */
export async function servePage(
  source: Source,
  list: List,
  projectId: string,
  query: Record<string, unknown>,
): Promise<Page> {
  const walk = startWalk(list, projectId, query)
  const position = await findPosition(source, walk, query.cursor as string | undefined)
  if (position) await source.reach(position.mark)
  const limit = query.limit as number
  const inTurn: Take = (weight, work) => source.fair(projectId, weight, work)
  // Of a large page the total belongs to its turn: the pages of many would lie finished in memory and wait for theirs.
  const [whole, part] = limit > SHORT ? [inTurn, atOnce] : [atOnce, inTurn]
  const rowsWeight = weightOf(limit) + (walk.indexed ? 0 : PASSING)
  const totalWeight = isCountShort(walk) ? 1 : PASSING
  return whole(rowsWeight + (position?.total === undefined ? totalWeight : 0), async () => {
    const { rows, horizon } = await part(rowsWeight, () => readRows(source, walk, limit, position))
    const total = knownTotal(walk, rows, position) ?? (await part(totalWeight, () => countRows(source, walk)))
    const mark = position || !rows.hasMore() ? position?.mark : await source.mark()
    return { json: endPage(walk, rows, { total, horizon, mark }), horizon }
  })
}

/** Does work of this weight, in the tenant's turn or without asking. */
type Take = <T>(weight: number, work: () => Promise<T>) => Promise<T>

const atOnce: Take = (_weight, work) => work()

// A page of this many items is a short read.
const SHORT = 50
/** What a page of so many items, which an index leads to, costs in turns. */
export const weightOf = (limit: number) => Math.ceil(limit / SHORT)

// What may pass over every row of the project: a count, and a page that no index serves alone.
const PASSING = 15

/** Whether the total is a sum of counters, or a count of what one person has. */
const isCountShort = ({ counter, few }: Walk) => counter !== undefined || few.length > 0

async function readRows(source: Source, walk: Walk, limit: number, position: Place | undefined) {
  // The horizon is read before the rows: what it promises must be visible to them.
  const horizon = walk.bySync ? (position?.horizon ?? (await source.horizon(walk.projectId))) : undefined
  const read = walk.indexed ? source.read : source.readLong
  const place = position ? [position.at, position.id] : []
  const rows = new PageRows(walk.list, limit)
  await read(pageStatement(walk, limit, position !== undefined), [...walk.params, ...place], rows.take)
  return { rows, horizon }
}

/** The total as far as nothing has to be counted for it: from the cursor, from the page, or because the page is all there is. */
function knownTotal(walk: Walk, rows: PageRows, position: Place | undefined): number | undefined {
  if (position) return position.total
  if (!rows.hasMore()) return rows.count
  return walk.counter && rows.total
}

// The columns of a page before those of the shape.
const [AT, ID, TOTAL, SHAPE] = [0, 1, 2, 3] as const

/** The rows of a page as they come, and one more if there are further ones. */
class PageRows {
  readonly json: RowList
  readonly #limit: number
  count = 0
  /** What the first one bears. */
  total = 0
  /** The place of the last one that fits. */
  last = { at: '', id: '' }

  constructor({ shape }: List, limit: number) {
    this.json = shape.beginList('{"data":[', SHAPE)
    this.#limit = limit
  }

  readonly take = (row: Row): void => {
    this.count += 1
    if (this.hasMore()) return
    if (this.count === 1) this.total = Number(row.text(TOTAL))
    if (this.count === this.#limit) this.last = { at: instantFromPg(row.text(AT)!), id: row.text(ID)! }
    this.json.add(row)
  }

  hasMore(): boolean {
    return this.count > this.#limit
  }
}

/** A place that an id named carries no total: it is counted anew. */
type Place = Omit<Position, 'total'> & { total: number | undefined }

interface Walk {
  list: List
  projectId: string
  given: Record<string, unknown>
  /** Ordered by updated_at, ascending. */
  bySync: boolean
  /** Whether an index leads straight to the rows of a page. Else it may take long, and no neighbour shall wait for it. */
  indexed: boolean
  /** Whether its statements are prepared. Each connection keeps a plan of each, and combinations of filters are many. */
  common: boolean
  /** The conditions of filters that leave only a few rows. */
  few: string[]
  /** Names this walk's tenant, list and filters; see `writeCursor`. */
  binding: string
  conditions: string[]
  params: Param[]
  /** The key in `counts` that knows the total, when one does. */
  counter: Counter | undefined
}

interface Counter {
  field: string
  /** Whether it is the counter of the value of the one filter that came. */
  filtered: boolean
}

function startWalk(list: List, projectId: string, query: Record<string, unknown>): Walk {
  const given: Record<string, unknown> = {}
  for (const name of [...Object.keys(list.filters), ...SYNC_FILTERS]) {
    const value = query[`filter[${name}]`]
    if (value !== undefined) given[name] = value
  }
  const params: Param[] = [projectId]
  const conditions = [`${list.alias}.project_id = $1`]
  const few: string[] = []
  for (const [name, value] of Object.entries(given)) {
    const filter = list.filters[name]
    const condition = filter
      ? filter.where(`$${params.length + 1}`)
      : syncCondition(list.alias, name, params.length + 1)
    if (condition === '') continue
    conditions.push(condition)
    if (filter?.selective) few.push(condition)
    params.push(filter?.param ? filter.param(value as never) : (value as Param))
  }
  const standing = list.standing?.(given)
  const bySync = SYNC_FILTERS.some((name) => name in given)
  const filters = restricting(list, given)
  if (standing?.where) conditions.push(standing.where)
  return {
    list,
    projectId,
    given,
    bySync,
    indexed: isIndexed(filters, bySync),
    common: filters.length <= 1,
    few,
    binding: JSON.stringify([projectId, list.name, given]),
    conditions,
    params,
    counter: counterOf(filters, bySync, standing?.counter),
  }
}

function syncCondition(alias: string, name: string, n: number): string {
  return `${alias}.updated_at ${name === 'updated_at.from' ? '>=' : '<'} $${n}`
}

/** The filters that came and leave something out, apart from the window. */
function restricting({ filters }: List, given: Record<string, unknown>): Filter[] {
  const came = Object.keys(given).flatMap((name) => filters[name] ?? [])
  return came.filter(({ where }) => where('$1') !== '')
}

/** Each filter alone has an index in the order of creation; those that are counted have one in the order of changes too. */
function isIndexed(filters: Filter[], bySync: boolean): boolean {
  if (filters.length === 0 || filters.some(({ selective }) => selective)) return true
  return filters.length === 1 && (!bySync || filters[0]!.counter !== undefined)
}

/** A window is counted, and so is whatever no counter knows. */
function counterOf(filters: Filter[], bySync: boolean, standing: string | undefined): Counter | undefined {
  if (bySync) return undefined
  if (filters.length === 0) return { field: standing ?? '', filtered: false }
  const counter = filters.length === 1 && standing === undefined ? filters[0]!.counter : undefined
  return counter === undefined ? undefined : { field: counter, filtered: true }
}

/** Where the walk goes on: from our own cursor, or behind the item whose id was given. Undefined at its beginning. */
async function findPosition(source: Source, walk: Walk, cursor: string | undefined): Promise<Place | undefined> {
  if (cursor === undefined) return undefined
  const own = readCursor(cursor, walk.binding)
  if (own) return own
  const { list, projectId } = walk
  if (!walk.bySync && isId(cursor)) {
    const statement = {
      name: `${list.name} place`,
      text: `select created_at from ${list.table} where project_id = $1 and id = $2`,
    }
    const [row] = await source.read(statement, [projectId, cursor])
    if (row) return { at: instantFromPg(row.text(0)!), id: cursor, total: undefined }
  }
  const orId = walk.bySync ? '' : ', or the id of an item'
  throw new ApiError(
    400,
    'invalid_cursor',
    `cursor must be a next_cursor of this list with the same filters, unchanged${orId}.`,
  )
}

/**
 * The rows are found before anything is joined to them. In one step the planner, which takes any window for a two
 * hundredth of the table, joins all rows of one that it thinks is smaller than a page, and sorts them.
 */
function pageStatement(walk: Walk, limit: number, behind: boolean): Statement {
  const { list, bySync, params } = walk
  const { alias, shape } = list
  const at = bySync ? `${alias}.updated_at` : `${alias}.created_at`
  const [comparison, direction] = bySync ? ['>', 'asc'] : ['<', 'desc']
  const place = behind
    ? ` and (${at}, ${alias}.id) ${comparison} ($${params.length + 1}::timestamptz, $${params.length + 2})`
    : ''
  const order = `order by ${at} ${direction}, ${alias}.id ${direction}`
  const text = (most: number) => `
    select ${at}, ${alias}.id, ${walk.counter && !behind ? counterSum(walk.counter, list) : 'null'}, ${shape.columns}
    from (select ${alias}.* from ${matching(walk)}${place} ${order} limit ${most}) ${alias} ${list.joins} ${order}`
  return limited(nameOf(walk, behind ? 'behind' : 'first'), limit, limit + 1, text)
}

/** Under which a statement of the walk is prepared, if it is. */
function nameOf({ list, given, conditions, common }: Walk, what: string): string | undefined {
  return common ? `${list.name} ${Object.keys(given).join(' ')} ${what} ${conditions.length}` : undefined
}

/** The rows that match, as what follows `from`. What a person has is found first, and sifted by the rest. */
function matching({ list: { table, alias }, conditions, few }: Walk): string {
  const where = (which: string[]) => which.join(' and ')
  if (few.length === 0 || conditions.length === few.length + 1) return `${table} ${alias} where ${where(conditions)}`
  const [tenant, ...filters] = conditions as [string, ...string[]]
  const rest = filters.filter((condition) => !few.includes(condition))
  // With an offset it is a step of its own.
  return `(select * from ${table} ${alias} where ${where([tenant, ...few])} offset 0) ${alias} where ${where(rest)}`
}

/**
 * A statement for at most `most` rows, with the next of a few limits in its text: as a parameter it would hide from the
 * planner that only a few rows are wanted, and planned anew for each limit it would cost several times what it does. Without
 * a name it is not prepared.
 */
export function limited(
  name: string | undefined,
  limit: number,
  most: number,
  text: (most: number) => string,
): Statement {
  const prepared = name === undefined ? undefined : PREPARED_LIMITS.find((one) => one >= limit)
  const large = limit > SHORT
  if (prepared === undefined) return { text: text(most), large }
  const statement = { large, name: statementName(`${name} ${prepared}`), text: text(prepared + most - limit) }
  return prepared === limit ? statement : { ...statement, most }
}

const names = new Map<string, string>()

/** PostgreSQL cuts names at 63 bytes, so that a long one is replaced by a number. */
function statementName(long: string): string {
  const name = names.get(long) ?? `page ${names.size}`
  names.set(long, name)
  return name
}

async function countRows(source: Source, walk: Walk): Promise<number> {
  const { list, counter, params } = walk
  const text = counter ? `select ${counterSum(counter, list)}` : `select count(*) from ${matching(walk)}`
  const long = nameOf(walk, 'count')
  const name = long && statementName(long)
  // A count may be long: on a pipelined connection its neighbours would wait for it.
  const read = isCountShort(walk) ? source.read : source.readLong
  const [row] = await read({ name, text }, params)
  return Number(row!.text(0))
}

/** The total by the counters that the writing statements keep; the filter's value, if any, is the second parameter. */
function counterSum({ field, filtered }: Counter, { name, countedAs = name }: List): string {
  return `(select coalesce(sum(n), 0) from counts
    where project_id = $1 and list = '${countedAs}' and field = '${field}' and value = ${filtered ? '$2' : "''"})`
}

/** What a cursor hands on from page to page. */
type HandedOn = Pick<Position, 'total' | 'horizon' | 'mark'>

function endPage(walk: Walk, rows: PageRows, handedOn: HandedOn): JsonBytes {
  let next = ''
  if (rows.hasMore()) {
    const cursor = writeCursor({ ...rows.last, ...handedOn }, walk.binding)
    next = `,"next_cursor":"${cursor}","cursor":"${cursor}"`
  }
  return rows.json.end(`],"pagination":{"has_more":${rows.hasMore()},"total":${handedOn.total}${next}}}`)
}
