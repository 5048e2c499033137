// Walks a list of another service page by page, and says in a sentence where the list contradicts itself.
import { Refusal } from '../../../lib/errors.ts'
import { type ItemKind, isObject, type Json, textOf } from './convert.ts'
import type { ApiSource, Response } from './source.ts'

export interface Page {
  items: Json[]
  /** Items that are no objects. */
  odd: number
  /** The cursor of the next page; null after the last one. */
  next: string | null
  total: number | undefined
}

export interface ListName {
  kind: ItemKind
  path: string
  query?: Record<string, string>
}

// The most per page in the specification, which names two limits.
const LIMITS: Partial<Record<ItemKind, number>> = { funnel: 100, product: 100 }
const LARGEST_LIMIT = 500
const SMALLER_LIMIT = 100
// Pages in a row without items.
const MAX_EMPTY = 10

/** Whether the service has the list, and whether it takes the query: others are refused, or ignored. */
export async function hasList(source: ApiSource, { path, query }: ListName): Promise<boolean> {
  const response = await source.get(path, { ...query, limit: '1' })
  if (response.status === 401 || response.status === 403) throw source.refusal(path, response)
  return response.status === 200 && isObject(response.body) && Array.isArray(response.body.data)
}

/** How many records the list says it has; undefined if it does not say. */
export async function totalOf(source: ApiSource, { path, query }: ListName): Promise<number | undefined> {
  const { status, body } = await source.get(path, { ...query, limit: '1' })
  if (status !== 200 || !isObject(body) || !isObject(body.pagination)) return undefined
  return numberOf(body.pagination.total)
}

/** The pages behind the cursor, which is forgotten if the service no longer knows it. */
export async function* pagesOf(source: ApiSource, list: ListName, from: string | null): AsyncGenerator<Page> {
  const seen = new Set<string>()
  let cursor = from
  let limit = LIMITS[list.kind] ?? LARGEST_LIMIT
  for (let empty = 0; ; ) {
    const query = { ...list.query, limit: String(limit), ...(cursor !== null && { cursor }) }
    const response = await source.get(list.path, query)
    if (isRefused(response) && limit > SMALLER_LIMIT) {
      limit = SMALLER_LIMIT
      continue
    }
    if (isRefused(response) && cursor !== null && seen.size === 0) {
      cursor = null
      continue
    }
    const page = readPage(source, list.path, response)
    yield page
    if (page.next === null) return
    if (seen.has(page.next))
      throw new Refusal(`${source.url}${list.path} returns a cursor a second time: the list has no end.`)
    seen.add(page.next)
    empty = page.items.length === 0 ? empty + 1 : 0
    if (empty === MAX_EMPTY)
      throw new Refusal(`${source.url}${list.path} sent ${MAX_EMPTY} empty pages and says that more follow.`)
    cursor = page.next
  }
}

const isRefused = ({ status }: Response) => status === 400 || status === 422

function readPage(source: ApiSource, path: string, response: Response): Page {
  const { status, body } = response
  if (status !== 200) throw source.refusal(path, response)
  if (!isObject(body) || !Array.isArray(body.data))
    throw new Refusal(`${source.url}${path} did not return a list: its response has no "data" with items.`)
  const items = body.data.filter(isObject)
  const pagination = isObject(body.pagination) ? body.pagination : {}
  const hasMore = pagination.has_more === true
  const next = hasMore
    ? (textOf(pagination.next_cursor) ?? textOf(pagination.cursor) ?? textOf(items.at(-1)?.id))
    : null
  if (next === undefined) throw new Refusal(`${source.url}${path} says that more items follow, and returns no cursor.`)
  return { items, odd: body.data.length - items.length, next, total: numberOf(pagination.total) }
}

const numberOf = (value: unknown) => (Number.isSafeInteger(value) ? (value as number) : undefined)
