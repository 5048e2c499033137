// Lists as async iterables: the pages are asked for as the items are read.
import { notFromTundish } from './errors.ts'
import type { Http } from './http.ts'

/** The items of a list. Iterating again begins a new walk. */
export interface List<Item> extends AsyncIterable<Item> {
  /** The pages of a walk, each with the exact number of all items. */
  pages(): AsyncGenerator<Page<Item>>
  /** How many items match, without reading them. */
  total(): Promise<number>
  /** All items, for lists that are short. */
  all(): Promise<Item[]>
}

export interface Page<Item> {
  items: Item[]
  total: number
  /** In a walk by `updatedFrom` or `updatedTo`: every change stamped before this instant is visible. */
  horizon: string | undefined
  /** In such a walk, on its first page: the server has lost commits that were read before. See `Void`. */
  voidFrom: string | undefined
}

interface Envelope<Item> {
  data: Item[]
  pagination: { has_more: boolean; total: number; next_cursor?: string }
}

const WINDOW: Record<string, string> = { updatedFrom: 'updated_at.from', updatedTo: 'updated_at.to' }

export function list<Item>(
  http: Http,
  path: string,
  headers: () => Record<string, string>,
  options: Record<string, unknown>,
  largest: number,
  parse?: (text: string) => unknown,
): List<Item> {
  const { limit = largest, signal, ...filters } = options as { limit?: number; signal?: AbortSignal }
  const given = Object.entries(filters).map(([name, value]) => [`filter[${WINDOW[name] ?? name}]`, value])

  async function read(query: Record<string, unknown>): Promise<Page<Item> & { next: string | undefined }> {
    const all = { ...Object.fromEntries(given), ...query }
    const call = { path, headers: headers(), query: all, retry: 'safe', signal, ...(parse && { parse }) } as const
    const answer = await http.json<Envelope<Item>>(call)
    if (!answer.body?.pagination) throw notFromTundish()
    const { data, pagination } = answer.body
    const horizon = answer.headers.get('x-sync-horizon') ?? undefined
    const voidFrom = answer.headers.get('x-void-from') ?? undefined
    const next = pagination.has_more ? pagination.next_cursor : undefined
    return { items: data, total: pagination.total, horizon, voidFrom, next }
  }

  async function* pages(): AsyncGenerator<Page<Item>> {
    let cursor: string | undefined
    do {
      const { next, ...page } = await read({ limit, cursor })
      yield page
      cursor = next
    } while (cursor !== undefined)
  }

  async function* items(): AsyncGenerator<Item> {
    for await (const page of pages()) yield* page.items
  }

  return {
    pages,
    [Symbol.asyncIterator]: items,
    total: async () => (await read({ limit: 1 })).total,
    async all() {
      const all: Item[] = []
      for await (const item of items()) all.push(item)
      return all
    },
  }
}
