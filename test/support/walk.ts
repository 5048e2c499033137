// Walks through a list page by page, and checks the invariants between pages.
import assert from 'node:assert/strict'
import type { Json, Project } from './server.ts'

export interface Page {
  items: Json[]
  total: number
  horizon: string | undefined
  cursor: string | undefined
}

/** The pages of a walk as they are requested; checks envelope, total, horizon and cursors of each. */
export async function* pages(
  project: Pick<Project, 'get'>,
  path: string,
  query: Record<string, string> = {},
): AsyncGenerator<Page> {
  const seen = new Set<string>()
  let first: Page | undefined
  for (let cursor: string | undefined; ; ) {
    const response = await project.get(path, cursor ? { ...query, cursor } : query)
    const page = readPage(response, query)
    first ??= page
    assert.deepEqual([page.total, page.horizon], [first.total, first.horizon])
    yield page
    if (page.cursor === undefined) return
    assert.ok(!seen.has(page.cursor), 'A cursor was returned twice.')
    seen.add(page.cursor)
    cursor = page.cursor
  }
}

/** All items of a walk. */
export async function walk(project: Pick<Project, 'get'>, path: string, query?: Record<string, string>) {
  const items: Json[] = []
  for await (const page of pages(project, path, query)) items.push(...page.items)
  return items
}

function readPage(
  { status, body, text, headers }: Awaited<ReturnType<Project['get']>>,
  query: Record<string, string>,
): Page {
  assert.equal(status, 200, text)
  assert.deepEqual(Object.keys(body), ['data', 'pagination'])
  const { has_more, total, next_cursor, cursor } = body.pagination
  const names = has_more ? ['has_more', 'total', 'next_cursor', 'cursor'] : ['has_more', 'total']
  assert.deepEqual(Object.keys(body.pagination), names)
  assert.equal(next_cursor, cursor)
  const limit = Number(query.limit ?? 20)
  assert.ok(has_more ? body.data.length === limit : body.data.length <= limit)
  if (has_more) assert.match(cursor, /^[A-Za-z0-9_~.-]{1,256}$/)
  const synced = Object.keys(query).some((name) => name.startsWith('filter[updated_at.'))
  const horizon = headers['x-sync-horizon'] as string | undefined
  if (synced) assert.match(horizon ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
  else assert.equal(horizon, undefined)
  return { items: body.data, total, horizon, cursor }
}
