// Lists in pages: the shown page, or all rows for a download as CSV, and the links between pages.

import type { Page } from '../admin/list.ts'
import type { Input } from '../admin/operation.ts'
import { type Item, type ListId, rowsOf } from './call.ts'
import { html, type Piece } from './html.ts'
import { choicesAndPositions, type View } from './view.ts'

const ROWS = 20
// A longer download would take many seconds. The APIs and `tundish sync` have no limit.
const MAX_CSV_ROWS = 10_000

export interface Listed<T = unknown> {
  data: T[]
  /** Undefined on the last page. */
  next: string | undefined
  /** The query parameter with the position in this list: `cursor`, or `cursor_NAME` where a page has several lists. */
  cursor: 'cursor' | `cursor_${string}`
}

/** Reads the shown page of a list. If the table is downloaded as CSV, reads all pages, up to 10,000 rows. */
export async function listed<I extends ListId>(
  view: View,
  table: string,
  operation: I,
  { params = {}, query = {} }: Partial<Pick<Input, 'params' | 'query'>>,
  { rows = ROWS, cursor = 'cursor' }: { rows?: number; cursor?: Listed['cursor'] } = {},
): Promise<Listed<Item<I>>> {
  if (view.query.get('csv') === table) {
    const { items, isWhole } = await rowsOf(view.call, operation, { params, query }, MAX_CSV_ROWS)
    if (!isWhole) view.cuts.set(table, items.length)
    return { data: items, next: undefined, cursor }
  }
  const position = view.query.get(cursor)
  const { data, pagination }: Page<Item<I>> = await view.call(operation, {
    params,
    query: { ...query, limit: rows, ...(position && { cursor: position }) },
  })
  return { data, next: pagination.next_cursor, cursor }
}

/** Links to the next page of a list and back to the first. */
export function pageLinks(view: View, { next, cursor }: Listed): Piece {
  const to = (position: string | null) => view.href(view.path, { ...choicesAndPositions(view), [cursor]: position })
  const first = view.query.has(cursor) && html`<a href="${to(null)}">First page</a>`
  if (next === undefined) return first && html`<p class="pages">${first}</p>`
  return html`<p class="pages">${first} <a class="button" href="${to(next)}">Next page</a></p>`
}
