// Serves lists: one declaration → its statements, its pages, its totals, and the walk that returns every row once.
import { type Position, readCursor, writeCursor } from './cursor.ts'
import type { Db, Param, Row, Statement } from './db.ts'
import { ApiError } from './errors.ts'
import type { List } from './list.ts'
import { readHorizon } from './sync.ts'
import { isId } from './text.ts'
import { instantFromPg } from './time.ts'

export interface Page {
  json: string
  horizon?: string
}

const SYNC_FILTERS = ['updated_at.from', 'updated_at.to'] as const
// Limits that clients use again and again: their statements are prepared by name. Any other limit is planned each time.
const PREPARED_LIMITS = new Set([20, 50, 100, 200, 250, 500])

/** Serves one page of a project's list. `query` has been read by `listQuery`. */
export async function servePage(db: Db, list: List, projectId: string, query: Record<string, unknown>): Promise<Page> {
  const walk = startWalk(list, projectId, query)
  const position = await findPosition(db, walk, query.cursor as string | undefined)
  const limit = query.limit as number
  return db.fair(projectId, weightOf(walk, limit, position), () => readPage(db, walk, limit, position))
}

// A page of this many items is a short read.
const SHORT = 50
// A count may pass over every row of the project.
const COUNTING = 15

function weightOf(walk: Walk, limit: number, position: Place | undefined): number {
  const counts = position ? position.total === undefined : walk.counter === undefined
  return Math.ceil(limit / SHORT) + (counts ? COUNTING : 0)
}

async function readPage(db: Db, walk: Walk, limit: number, position: Place | undefined): Promise<Page> {
  // The horizon is read before the rows: what it promises must be visible to them.
  const horizon = walk.bySync ? (position?.horizon ?? (await readHorizon(db, walk.projectId))) : undefined
  const [rows, counted] = await Promise.all([
    db.read(pageStatement(walk, limit, position !== undefined), [
      ...walk.params,
      ...(position ? [position.at, position.id] : []),
    ]),
    position ? position.total : walk.counter ? undefined : countRows(db, walk),
  ])
  // A first page brings its total along; an empty one has none to bring, for then nothing matches.
  const total = counted ?? (position ? await countRows(db, walk) : Number(rows[0]?.[TOTAL] ?? 0))
  return { json: writePage(walk, rows, limit, total, horizon), horizon }
}

// The columns of a page before those of the shape.
const TOTAL = 2
const SHAPE = 3

/** A place that an id named carries no total: it is counted anew. */
type Place = Omit<Position, 'total'> & { total: number | undefined }

interface Walk {
  list: List
  projectId: string
  given: Record<string, unknown>
  /** Ordered by updated_at, ascending. */
  bySync: boolean
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
  for (const [name, value] of Object.entries(given)) {
    const filter = list.filters[name]
    const condition = filter
      ? filter.where(`$${params.length + 1}`)
      : syncCondition(list.alias, name, params.length + 1)
    if (condition === '') continue
    conditions.push(condition)
    params.push(filter?.param ? filter.param(value as never) : (value as Param))
  }
  const standing = list.standing?.(given)
  if (standing?.where) conditions.push(standing.where)
  return {
    list,
    projectId,
    given,
    bySync: SYNC_FILTERS.some((name) => name in given),
    binding: JSON.stringify([projectId, list.name, given]),
    conditions,
    params,
    counter: counterOf(list, given, standing?.counter),
  }
}

function syncCondition(alias: string, name: string, n: number): string {
  return `${alias}.updated_at ${name === 'updated_at.from' ? '>=' : '<'} $${n}`
}

function counterOf(list: List, given: Record<string, unknown>, standing: string | undefined): Counter | undefined {
  const names = Object.keys(given).filter((name) => list.filters[name]?.where('$1') !== '')
  if (names.length === 0) return { field: standing ?? '', filtered: false }
  const counter = names.length === 1 && standing === undefined ? list.filters[names[0]!]?.counter : undefined
  return counter === undefined ? undefined : { field: counter, filtered: true }
}

/** Where the walk goes on: from our own cursor, or behind the item whose id was given. Undefined at its beginning. */
async function findPosition(db: Db, walk: Walk, cursor: string | undefined): Promise<Place | undefined> {
  if (cursor === undefined) return undefined
  const own = readCursor(cursor, walk.binding)
  if (own) return own
  const { list, projectId } = walk
  if (!walk.bySync && isId(cursor)) {
    const statement = {
      name: `${list.name} place`,
      text: `select created_at from ${list.table} where project_id = $1 and id = $2`,
    }
    const [row] = await db.read(statement, [projectId, cursor])
    if (row) return { at: instantFromPg(row[0]!), id: cursor, total: undefined }
  }
  const orId = walk.bySync ? '' : ', or the id of an item'
  throw new ApiError(400, `cursor must be a next_cursor of this list with the same filters, unchanged${orId}.`)
}

function pageStatement(walk: Walk, limit: number, behind: boolean): Statement {
  const { list, bySync, conditions, params, given } = walk
  const { alias, shape } = list
  const at = bySync ? `${alias}.updated_at` : `${alias}.created_at`
  const [comparison, direction] = bySync ? ['>', 'asc'] : ['<', 'desc']
  const place = behind
    ? [`(${at}, ${alias}.id) ${comparison} ($${params.length + 1}::timestamptz, $${params.length + 2})`]
    : []
  // The limit stands in the text: as a parameter it would hide from the planner that only a few rows are wanted.
  const text = `
    select ${at}, ${alias}.id, ${walk.counter && !behind ? counterSum(walk.counter, list.name) : 'null'}, ${shape.columns}
    from ${list.table} ${alias} ${list.joins}
    where ${[...conditions, ...place].join(' and ')}
    order by ${at} ${direction}, ${alias}.id ${direction} limit ${limit + 1}`
  const name = `${list.name} ${Object.keys(given).join(' ')} ${behind ? 'behind' : 'first'} ${limit} ${conditions.length}`
  return PREPARED_LIMITS.has(limit) ? { name: statementName(name), text } : { text }
}

const names = new Map<string, string>()

/** PostgreSQL cuts names at 63 bytes, so that a long one is replaced by a number. */
function statementName(long: string): string {
  const name = names.get(long) ?? `page ${names.size}`
  names.set(long, name)
  return name
}

async function countRows(db: Db, walk: Walk): Promise<number> {
  const { list, counter, conditions, params } = walk
  if (counter) {
    const [row] = await db.query(`select ${counterSum(counter, list.name)} as n`, params)
    return Number(row!.n)
  }
  // A count may be long: on a pipelined connection its neighbours would wait for it.
  const [row] = await db.query(
    `select count(*) as n from ${list.table} ${list.alias} where ${conditions.join(' and ')}`,
    params,
  )
  return Number(row!.n)
}

/** The total by the counters that the writing statements keep; the filter's value, if any, is the second parameter. */
function counterSum({ field, filtered }: Counter, list: string): string {
  return `(select coalesce(sum(n), 0) from counts
    where project_id = $1 and list = '${list}' and field = '${field}' and value = ${filtered ? '$2' : "''"})`
}

function writePage(walk: Walk, rows: Row[], limit: number, total: number, horizon: string | undefined): string {
  const { write } = walk.list.shape
  const hasMore = rows.length > limit
  const served = hasMore ? limit : rows.length
  let data = ''
  for (let n = 0; n < served; n += 1) data += n === 0 ? write(rows[n]!, SHAPE) : `,${write(rows[n]!, SHAPE)}`
  let next = ''
  if (hasMore) {
    const [at, id] = rows[served - 1]!
    const cursor = writeCursor({ at: instantFromPg(at!), id: id!, total, horizon }, walk.binding)
    next = `,"next_cursor":"${cursor}","cursor":"${cursor}"`
  }
  return `{"data":[${data}],"pagination":{"has_more":${hasMore},"total":${total}${next}}}`
}
