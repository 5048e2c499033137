// Serves lists: one declaration → its statements, its pages, its totals, and the walk that returns every row once.
import type { JsonBytes } from '../../lib/json/buffer.ts'
import type { Row } from '../../lib/pg/row-bytes.ts'
import type { RowList } from '../../lib/shape/shape.ts'
import { isId } from '../../lib/text.ts'
import { instantFromPg } from '../../lib/time.ts'
import { afterItems, invalidCursor, type Position, readCursor, writeCursor } from './cursor.ts'
import type { List } from './list.ts'
import type { Source } from './source.ts'
import { countStatement, pageStatement, SHORT } from './statements.ts'
import { isCountShort, startWalk, type Walk } from './walk.ts'

export interface Page {
  json: JsonBytes
  horizon?: string
  /** The instant from which the reader's rows may be void; see `readVoidFrom`. */
  voidFrom?: string
  /** The number of items. */
  rows: number
}

/** Serves one page of a project's list. `query` was parsed by the schema of `listQuery`. */
export async function servePage(
  source: Source,
  list: List,
  projectId: string,
  query: Record<string, unknown>,
): Promise<Page> {
  const walk = startWalk(list, projectId, query)
  const voidFrom =
    query.cursor === undefined && (await source.voidFrom(projectId, walk.given[FROM] as string | undefined))
  const position = await findPosition(source, walk, query.cursor as string | undefined)
  if (position) await source.reach(position.mark)
  const limit = query.limit as number
  const inTurn: Take = (weight, work) => source.fair(projectId, weight, work)
  // The rows and the total of a large page are read in one turn, because finished rows would occupy memory while they wait for
  // a second turn.
  const [whole, part] = limit > SHORT ? [inTurn, atOnce] : [atOnce, inTurn]
  const rowsWeight = weightOf(limit) + (walk.indexed ? 0 : SCAN_WEIGHT)
  const totalWeight = isCountShort(walk) ? 1 : SCAN_WEIGHT
  return whole(rowsWeight + (position?.total === undefined ? totalWeight : 0), async () => {
    const { rows, horizon } = await part(rowsWeight, () => readRows(source, walk, limit, position))
    const total = knownTotal(walk, rows, position) ?? (await part(totalWeight, () => countRows(source, walk)))
    const mark = position || !rows.hasMore() ? position?.mark : await source.mark()
    const json = endPage(walk, rows, { total, horizon, mark })
    return { json, horizon, rows: Math.min(rows.count, limit), ...(voidFrom && { voidFrom }) }
  })
}

const FROM = 'updated_at.from'

/** Runs work of this weight in the tenant's turn, or immediately. */
type Take = <T>(weight: number, work: () => Promise<T>) => Promise<T>

const atOnce: Take = (_weight, work) => work()

/** The weight of a page of this many items that is read by an index. */
export const weightOf = (limit: number) => Math.ceil(limit / SHORT)

// The weight of reads that may scan every row of the project: a count, and a page without a matching index.
const SCAN_WEIGHT = 15

async function readRows(source: Source, walk: Walk, limit: number, position: Place | undefined) {
  // The horizon is read before the rows, which must include every change before it.
  const horizon = walk.bySync ? (position?.horizon ?? (await source.horizon(walk.projectId))) : undefined
  const read = walk.indexed ? source.read : source.readLong
  const place = position ? [position.at, position.id] : []
  const rows = new PageRows(walk.list, limit)
  await read(pageStatement(walk, limit, position !== undefined), [...walk.params, ...place], rows.take)
  return { rows, horizon }
}

/** The total, if it is known without counting: from the cursor, from the page, or because the page is the whole list. */
function knownTotal(walk: Walk, rows: PageRows, position: Place | undefined): number | undefined {
  if (position) return position.total
  if (!rows.hasMore()) return rows.count
  return walk.counter && rows.total
}

// The columns before those of the shape.
const AT = 0
const ID = 1
const TOTAL = 2
const SHAPE = 3

/** Collects the rows of a page as they arrive, and one more if there are further ones. */
class PageRows {
  readonly json: RowList
  readonly #limit: number
  count = 0
  /** From the first row. */
  total = 0
  /** The position of the last row of the page. */
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

/** A position given by an id has no total, which is counted then. */
type Place = Omit<Position, 'total'> & { total: number | undefined }

/** The position in the cursor, or of the item whose id it is; undefined without a cursor. */
async function findPosition(source: Source, walk: Walk, cursor: string | undefined): Promise<Place | undefined> {
  if (cursor === undefined) return undefined
  const position = readCursor(cursor, walk.binding)
  if (position) return position
  const { list, projectId } = walk
  if (!walk.bySync && isId(cursor)) {
    const statement = {
      name: `${list.name} place`,
      text: `select created_at from ${list.table} where project_id = $1 and id = $2`,
    }
    const [row] = await source.read(statement, [projectId, cursor])
    if (row) return { at: instantFromPg(row.text(0)!), id: cursor, total: undefined }
  }
  throw invalidCursor(walk.bySync ? '' : ', or the id of an item')
}

async function countRows(source: Source, walk: Walk): Promise<number> {
  // A count may be slow, and on a pipelined connection other reads would wait for it.
  const read = isCountShort(walk) ? source.read : source.readLong
  const [row] = await read(countStatement(walk), walk.params)
  return Number(row!.text(0))
}

/** The values that a cursor passes from page to page. */
type Carried = Pick<Position, 'total' | 'horizon' | 'mark'>

function endPage(walk: Walk, rows: PageRows, carried: Carried): JsonBytes {
  const next = rows.hasMore() ? writeCursor({ ...rows.last, ...carried }, walk.binding) : undefined
  return rows.json.end(afterItems(carried.total, next))
}
