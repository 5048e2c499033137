// Lists of the operator's API: newest first, in pages, with a cursor.
import type { App } from '../../app.ts'
import { invalidCursor, readCursor, writeCursor } from '../../core/lists/cursor.ts'
import { hasRight } from '../../core/tenants/access.ts'
import { jsonOf } from '../../lib/json/json.ts'
import type { Row } from '../../lib/pg/row-bytes.ts'
import type { Param } from '../../lib/pg/types.ts'
import { type ObjectSchema, type Schema, Type } from '../../lib/shape/schema.ts'
import type { Shape } from '../../lib/shape/shape.ts'
import { instantFromPg } from '../../lib/time.ts'
import type { Input, Reading } from './operation.ts'
import { type ReachColumns, reachCondition } from './reach.ts'

export interface ListDeclaration<I extends string = string, T = unknown>
  extends Omit<Reading<I>, 'method' | 'query' | 'response' | 'run' | 'narrows'> {
  shape: Shape<T>
  from: string
  /** Lists are ordered by `at`, an instant, if it is given, and then by `key`, a unique text. */
  at?: string
  key: string
  /** Whether a text is a valid key, where the database would reject others: a cursor may be forged. */
  isKey?: (id: string) => boolean
  /** Conditions on the parameters of the path, which are $1 and so on in this order. */
  where?: string
  params?: readonly string[]
  /** Optional filters by their name in the query. */
  filters?: Record<string, Filter>
  /** Two parts of the list, each in the list's order. */
  parts?: Parts
  /** The tenant of each row, where the list has only the rows within the caller's reach. */
  reach?: ReachColumns
  /** The record for roles without the right `people`: without what identifies people. */
  withoutPeople?: Shape<T>
  /** Throws for a query that cannot be served. */
  check?: (app: App, input: Input) => Promise<void>
}

/** The rows that come first, and the others; a filter of true and false shows one part alone: false the first. */
interface Parts {
  filter: string
  schema: Schema
  first: string
  others: string
}

export interface Filter {
  schema: Schema
  /** SQL for the placeholder of the given value. */
  where: (placeholder: string, given: unknown) => string
  param?: (value: never) => Param
}

/** For the list of a project: its id is $1, and the rows are those of the table `alias`. */
export const ofProject = (alias: string, more?: string) => ofTenant('project_id', alias, more)

/** The same for an organization. */
export const ofOrganization = (alias: string, more?: string) => ofTenant('organization_id', alias, more)

const ofTenant = (column: string, alias: string, more?: string) => ({
  params: [column],
  where: `${alias}.${column} = $1${more === undefined ? '' : ` and ${more}`}`,
})

/** A filter for rows with this value in a column. */
export const equals = (column: string, description: string, more: object = {}): Filter => ({
  schema: Type.String({ description, ...more }),
  where: (value) => `${column} = ${value}`,
})

/** The same for a column that may be null, with an index: an empty value finds rows without one. */
export const equalsOrNone = (column: string, description: string): Filter => ({
  schema: Type.String({ description }),
  where: (value, given) => (given === '' ? `${column} is null and ${value}::text = ''` : `${column} = ${value}`),
})

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100
// The instant in the cursors of lists without `at`.
const NO_INSTANT = '1970-01-01T00:00:00.000000Z'

/** What a list returns. */
export interface Page<T> {
  data: T[]
  pagination: { has_more: boolean; next_cursor?: string }
}

/** Declares a list. */
export function list<const I extends string, T>(declaration: ListDeclaration<I, T>): Reading<I, Page<T>> {
  const { shape, filters, check, reach } = declaration
  return {
    ...declaration,
    narrows: reach !== undefined,
    method: 'GET',
    query: listQuery({ ...filters, ...(declaration.parts && { [declaration.parts.filter]: declaration.parts }) }),
    response: pageOf(shape),
    checkInput(input) {
      for (const [name, value] of Object.entries(input.query)) filters?.[name]?.param?.(value as never)
      placeOf(declaration, input)
    },
    async run(app, input) {
      await check?.(app, input)
      return page(app, declaration, input)
    },
  }
}

function listQuery(filters: Record<string, Pick<Filter, 'schema'>>): ObjectSchema {
  const own = Object.entries(filters).map(([name, { schema }]) => [name, Type.Optional(schema)])
  return Type.Object({
    ...Object.fromEntries(own),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT, description: 'Maximum number of items.' }),
    ),
    cursor: Type.Optional(Type.String({ description: '`pagination.next_cursor` of the previous page, unchanged.' })),
  })
}

function pageOf<T>(shape: Shape<T>): Schema<Page<T>> {
  return Type.Named(`${shape.name}Page`, {
    data: Type.Array(shape.schema, { description: 'The items, newest first.' }),
    pagination: Type.Object(
      {
        has_more: Type.Boolean({ description: 'Whether there are more items.' }),
        next_cursor: Type.Optional(Type.String({ description: 'For the next page; absent on the last.' })),
      },
      { description: 'Position in the list.', additionalProperties: false },
    ),
  })
}

async function page<T>(app: App, declaration: ListDeclaration<string, T>, input: Input) {
  const { at, withoutPeople } = declaration
  const shape = withoutPeople && !hasRight(input.access, 'people') ? withoutPeople : declaration.shape
  const { limit = DEFAULT_LIMIT } = input.query as { limit?: number }
  const place = placeOf(declaration, input)
  const rows: { row: Row; part: number }[] = []
  for (const part of partsOf(declaration, input)) {
    if (rows.length > limit || (place && part < place.part)) continue
    const [after, most] = [part === place?.part ? place : undefined, limit + 1 - rows.length]
    for (const row of await readPart(app, declaration, input, { shape, part, after, most })) rows.push({ row, part })
  }
  const served = rows.slice(0, limit)
  const last = rows.length > limit ? served.at(-1) : undefined
  const next = last && cursorOf(last.row, at !== undefined, bindingOf(declaration, input, last.part))
  const pagination = { has_more: next !== undefined, ...(next !== undefined && { next_cursor: next }) }
  const list = served.map(({ row }) => row)
  return jsonOf({ data: shape.list(list, 2), pagination })
}

const cursorOf = (row: Row, hasInstant: boolean, binding: string) =>
  writeCursor({ at: hasInstant ? instantFromPg(row.text(0)!) : NO_INSTANT, id: row.text(1)!, total: 0 }, binding)

/** The parts that a request asks for, in their order. */
function partsOf({ parts }: ListDeclaration, { query }: Pick<Input, 'query'>): number[] {
  if (!parts) return [0]
  const chosen = query[parts.filter]
  return chosen === undefined ? [0, 1] : [chosen ? 1 : 0]
}

/** Reads at most `most` rows of a part of the list, from its beginning or behind a place. */
function readPart(
  app: App,
  declaration: ListDeclaration,
  { params, query, access }: Input,
  { shape, part, after, most }: { shape: Shape; part: number; after: Place | undefined; most: number },
): Promise<Row[]> {
  const { from, at, key, where, filters = {}, parts } = declaration
  const { limit: _limit, cursor: _cursor, ...given } = query
  const values: Param[] = (declaration.params ?? []).map((name) => params[name]!)
  const conditions = where ? [where] : []
  const within = declaration.reach && reachCondition(access.reach, declaration.reach, values)
  if (within !== undefined) conditions.push(within)
  if (parts) conditions.push(part === 0 ? parts.first : parts.others)
  for (const [name, value] of Object.entries(given)) {
    if (name === parts?.filter) continue
    const { where: condition, param } = filters[name]!
    values.push(param ? param(value as never) : (value as Param))
    conditions.push(condition(`$${values.length}`, value))
  }
  if (after) {
    values.push(...(at ? [after.at] : []), after.id)
    conditions.push(
      at ? `(${at}, ${key}) < ($${values.length - 1}::timestamptz, $${values.length})` : `${key} < $${values.length}`,
    )
  }
  return app.db.read(
    {
      text: `select ${at ?? 'null'}, ${key}, ${shape.columns} from ${from}
        ${conditions.length > 0 ? `where ${conditions.join(' and ')}` : ''}
        order by ${at ? `${at} desc, ` : ''}${key} desc limit ${most}`,
    },
    values,
  )
}

interface Place {
  at: string
  id: string
  part: number
}

/** The place after which the page begins; undefined for the first page. Throws a 400 for a cursor of another list. */
function placeOf(declaration: ListDeclaration, input: Pick<Input, 'params' | 'query'>): Place | undefined {
  const { cursor } = input.query as { cursor?: string }
  if (cursor === undefined) return undefined
  for (const part of partsOf(declaration, input)) {
    const place = readCursor(cursor, bindingOf(declaration, input, part))
    if (place && declaration.isKey?.(place.id) !== false) return { ...place, part }
  }
  throw invalidCursor()
}

/** What a cursor belongs to: the list, its tenant and its filters, and the part of the list. */
function bindingOf(
  { id, params: names = [] }: ListDeclaration,
  { params, query }: Pick<Input, 'params' | 'query'>,
  part: number,
) {
  const { limit: _limit, cursor: _cursor, ...given } = query
  return JSON.stringify([id, names.map((name) => params[name]), given, ...(part === 0 ? [] : [part])])
}
