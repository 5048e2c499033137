// Serves a page of an organization's list: its rows, its exact total, and its horizon when the caller walks by changes.

import { afterItems, invalidCursor, type Position, readCursor, writeCursor } from '../../core/lists/cursor.ts'
import { readOrganizationHorizon } from '../../core/lists/organization-horizon.ts'
import { weightOf } from '../../core/lists/page.ts'
import { readOrganizationVoidFrom } from '../../core/lists/void.ts'
import type { JsonBytes } from '../../lib/json/buffer.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Param } from '../../lib/pg/types.ts'
import type { Shape } from '../../lib/shape/shape.ts'
import { instantFromPg } from '../../lib/time.ts'

export interface BillingList {
  path: string
  shape: Shape
  table: string
  alias: string
  /** The column that orders it newest first. */
  createdAt: string
  /** The columns that identify a row of the organization. */
  key: readonly string[]
  /** Further joins for the shape's columns, none of which may change the number of rows. */
  joins: string
  /** A condition that always holds. */
  where?: string
}

interface Query {
  limit: number
  cursor?: string
  'filter[updated_at.from]'?: string
  'filter[updated_at.to]'?: string
}

interface Walk {
  list: BillingList
  bySync: boolean
  conditions: string[]
  params: Param[]
  /** Names the organization, the list and the window; see `writeCursor`. */
  binding: string
}

// A count may pass over every row of the organization.
const COUNT_WEIGHT = 15
// Of a key of several columns, in a cursor: none of them has it.
const SEPARATOR = ' '

/** `line` is where the organization's reads take their turns. */
export async function servePage(
  db: Db,
  list: BillingList,
  organizationId: string,
  line: string,
  query: Query,
): Promise<{ json: JsonBytes; horizon?: string; voidFrom?: string }> {
  const walk = startWalk(list, organizationId, query)
  const position = placeOf(walk, query.cursor)
  const from = query['filter[updated_at.from]']
  const voidFrom = position ? undefined : await readOrganizationVoidFrom(db, organizationId, from)
  // Read before the rows: what it promises must be visible to them.
  const horizon = walk.bySync ? (position?.horizon ?? (await readOrganizationHorizon(db, organizationId))) : undefined
  const { limit } = query
  const rows = await db.fair(line, weightOf(limit), () => readRows(db, walk, limit, position))
  const hasMore = rows.length > limit
  const shown = hasMore ? rows.slice(0, limit) : rows
  const whole = position === undefined && !hasMore
  const total = position?.total ?? (whole ? rows.length : await db.fair(line, COUNT_WEIGHT, () => count(db, walk)))
  let next: string | undefined
  if (hasMore) {
    const last = shown.at(-1)!
    const place = { at: instantFromPg(last.text(0)!), id: last.text(1)!, total, ...(horizon && { horizon }) }
    next = writeCursor(place, walk.binding)
  }
  const json = list.shape.writeList(shown, '{"data":[', afterItems(total, next), PLACE_COLUMNS)
  return { json, ...(horizon && { horizon }), ...(voidFrom && { voidFrom }) }
}

function startWalk(list: BillingList, organizationId: string, query: Query): Walk {
  const from = query['filter[updated_at.from]']
  const to = query['filter[updated_at.to]']
  const params: Param[] = [organizationId]
  const conditions = [`${list.alias}.organization_id = $1`]
  if (list.where) conditions.push(list.where)
  if (from !== undefined) conditions.push(`${list.alias}.updated_at >= $${params.push(from)}`)
  if (to !== undefined) conditions.push(`${list.alias}.updated_at < $${params.push(to)}`)
  const binding = JSON.stringify([organizationId, list.path, from, to])
  return { list, bySync: from !== undefined || to !== undefined, conditions, params, binding }
}

function placeOf({ binding }: Walk, cursor: string | undefined): Position | undefined {
  if (cursor === undefined) return undefined
  const position = readCursor(cursor, binding)
  if (position) return position
  throw invalidCursor()
}

// The columns of a row before those of the shape: its time, and its key as one text.
const PLACE_COLUMNS = 2

function readRows(db: Db, { list, bySync, conditions, params }: Walk, limit: number, position: Position | undefined) {
  const { alias, table, shape, joins, key } = list
  const at = `${alias}.${bySync ? 'updated_at' : list.createdAt}`
  const names = key.map((name) => `${alias}.${name}`)
  const [comparison, direction] = bySync ? ['>', 'asc'] : ['<', 'desc']
  const all = [...params]
  const where = [...conditions]
  if (position) {
    const values = [position.at, ...position.id.split(SEPARATOR)].map((value) => `$${all.push(value)}`)
    where.push(`(${[at, ...names].join(', ')}) ${comparison} (${values.join(', ')})`)
  }
  const order = `order by ${[at, ...names].map((name) => `${name} ${direction}`).join(', ')}`
  const id = names.map((name) => `${name}::text`).join(` || '${SEPARATOR}' || `)
  // The rows are found in the order of an index before anything is joined to them.
  const text = `
    select ${at}, ${id}, ${shape.columns}
    from (select ${alias}.* from ${table} ${alias} where ${where.join(' and ')} ${order} limit ${limit + 1}) ${alias}
    ${joins} ${order}`
  return db.read({ text, large: limit > LARGE }, all)
}

const LARGE = 50

async function count(db: Db, { list: { alias, table }, conditions, params }: Walk): Promise<number> {
  const text = `select count(*) from ${table} ${alias} where ${conditions.join(' and ')}`
  const [row] = await db.readLong({ text }, params)
  return Number(row!.text(0))
}
