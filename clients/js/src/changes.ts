// Everything that changed since an instant, from the export: for a copy that misses nothing and repeats nothing.
import { notFromTundish, TundishConnectionError } from './errors.ts'
import type { Http } from './http.ts'
import { parseOrThrow, wait } from './http.ts'
import type { Exported } from './records.ts'

/** A changed record of one list. */
export type Change = {
  [List in keyof Exported]: {
    list: List
    item: Exported[List]
    horizon?: undefined
    voidFrom?: undefined
    projectCreatedAt?: undefined
  }
}[keyof Exported]

/** The end of all changes: the `since` and the `projectCreatedAt` of the next time. */
export interface End {
  list?: undefined
  item?: undefined
  voidFrom?: undefined
  horizon: string
  /** Undefined from a server that does not send it. */
  projectCreatedAt: string | undefined
}

/**
 * The server has lost commits that were read before: delete what you hold with `updated_at` at or after `voidFrom`, and
 * forget `since`. All records follow, since those whose last change was lost have an older `updated_at` again. Of another
 * project with the same id (see `projectCreatedAt`) it is the beginning of all time: delete everything.
 */
export interface Void {
  list?: undefined
  item?: undefined
  horizon?: undefined
  voidFrom: string
  projectCreatedAt?: undefined
}

export interface ChangesOptions {
  /** The horizon of the time before; without it everything is read. */
  since?: string | undefined
  /**
   * That of the time before. If the key's project was created at another instant, as on a server that was set up anew, what was
   * read before is not of it: `changes` begins with a `Void` of everything.
   */
  projectCreatedAt?: string | undefined
  signal?: AbortSignal | undefined
}

export interface ChangePagesOptions extends ChangesOptions {
  /** Where an earlier walk with the same `since` stopped. */
  cursor?: string | undefined
  /** How a line becomes a value; `JSON.parse` by default, which rounds long numbers within free objects. */
  parse?: ((line: string) => unknown) | undefined
}

/**
 * Some changes and where the walk goes on behind them; or, at the end, the horizon; or, at the beginning, that the server
 * has lost commits, see `Void`: the walk then begins anew, and its cursors belong to a walk without `since`.
 */
export type ChangePage = (
  | { changes: Change[]; cursor: string }
  | { changes: []; horizon: string }
  | { changes: []; voidFrom: string }
) & {
  /** The id of the key's project; undefined from a server that does not send it. */
  project: string | undefined
  /** When the project was created; undefined as `project`. */
  projectCreatedAt: string | undefined
}

const LISTS = {
  funnel: 'funnels',
  experiment: 'experiments',
  product: 'products',
  profile: 'profiles',
  session: 'sessions',
  session_replies: 'replies',
  subscription: 'subscriptions',
  transaction: 'transactions',
  credit_entry: 'credit_entries',
} as const

type Line =
  | { record: keyof typeof LISTS; data: never; cursor?: undefined; horizon?: undefined }
  | { record?: undefined; cursor: string; horizon?: undefined }
  | { record?: undefined; cursor?: undefined; horizon: string }

// Before all instants that are stored.
const BEGINNING = '0001-01-01T00:00:00.000000Z'
// How often a walk may break off without having come further.
const MAX_BREAKS = 5
const PAUSE_MS = 500

/**
 * The changes page by page. An answer that breaks off is resumed behind the last page, so that no change comes twice.
 * Store each page together with its cursor, and the walk can go on after a crash too.
 */
export async function* changePages(
  http: Http,
  headers: () => Record<string, string>,
  { since, cursor: begun, projectCreatedAt, signal, parse = JSON.parse }: ChangePagesOptions = {},
): AsyncGenerator<ChangePage> {
  let from = since
  let cursor = begun
  let createdAt = projectCreatedAt
  for (let breaks = 0; ; ) {
    try {
      let changes: Change[] = []
      let voidFrom: string | undefined
      let project: string | undefined
      const query = { from, cursor }
      const onHeaders = (headers: Headers) => {
        project = headers.get('x-project-id') ?? undefined
        const before = createdAt
        createdAt = headers.get('x-project-created-at') ?? before
        voidFrom = before === createdAt || before === undefined ? (headers.get('x-void-from') ?? undefined) : BEGINNING
      }
      for await (const text of http.lines({
        path: '/public/v1/export',
        headers: headers(),
        query,
        retry: 'safe',
        signal,
        onHeaders,
      })) {
        if (voidFrom !== undefined) break
        const line = lineOf(text, parse)
        if (line.horizon !== undefined) {
          yield { changes: [], horizon: line.horizon, project, projectCreatedAt: createdAt }
          return
        }
        if (line.record !== undefined) {
          const list = LISTS[line.record] as Change['list'] | undefined
          // A newer server may have kinds of records that this client does not know.
          if (list) changes.push({ list, item: line.data })
          continue
        }
        cursor = line.cursor
        breaks = 0
        yield { changes, cursor, project, projectCreatedAt: createdAt }
        changes = []
      }
      if (voidFrom !== undefined) {
        from = undefined
        cursor = undefined
        yield { changes: [], voidFrom, project, projectCreatedAt: createdAt }
        continue
      }
      throw new TundishConnectionError('The export ended before its last line.')
    } catch (error) {
      breaks += 1
      if (!(error instanceof TundishConnectionError) || breaks > MAX_BREAKS) throw error
      await wait(PAUSE_MS * breaks, signal)
    }
  }
}

function lineOf(text: string, parse: (line: string) => unknown): Line {
  const line = parseOrThrow(text, parse) as Line | null
  if (typeof (line?.record ?? line?.cursor ?? line?.horizon) === 'string') return line!
  throw notFromTundish()
}

/** Every change once, and at the end the horizon; at the beginning perhaps that what was read before is void. */
export async function* changes(
  http: Http,
  headers: () => Record<string, string>,
  options: ChangesOptions = {},
): AsyncGenerator<Change | End | Void> {
  for await (const page of changePages(http, headers, options)) {
    yield* page.changes
    if ('horizon' in page) yield { horizon: page.horizon, projectCreatedAt: page.projectCreatedAt }
    if ('voidFrom' in page) yield { voidFrom: page.voidFrom }
  }
}
