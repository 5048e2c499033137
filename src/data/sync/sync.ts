// Copies a project: first all records, then the changed ones. Each batch is stored together with the position of the copy.
import type { ChangePage } from '../../../clients/js/src/changes.ts'
import type { Tundish } from '../../../clients/js/src/client.ts'
import { Refusal } from '../../lib/errors.ts'
import { readExact } from '../../lib/json/exact.ts'
import { type Row, type Table, tablesOf } from './tables.ts'
import type { Batch, State, Target } from './target.ts'

export interface RunOptions {
  url: string
  signal: AbortSignal
  /** Called after each batch with the number of records that the run has stored. */
  onProgress?: (records: number) => void
  /** Called when rows were removed, and everything is read again; see `Emptied`. */
  onVoid?: (why: Emptied) => void
}

/** The server has lost what was written since `from`; or `project` was created anew, and the copy was of a former one with its id. */
export type Emptied = { from: string; project?: undefined } | { project: string; createdAt: string }

// The number of records stored in one transaction: the most that is repeated after a killed run.
const BATCH = 2000

/**
 * Reads everything that changed since the copy's horizon and stores it. The position is stored in the transaction of each
 * batch, so that after a killed run the next one continues where it ended: nothing is lost or stored twice.
 */
export async function run(
  tundish: Tundish,
  target: Target,
  initial: State | undefined,
  options: RunOptions,
): Promise<State> {
  let state = await walk(tundish, target, initial, options)
  if (initial?.cursor) {
    // The walk that was interrupted has the horizon of its beginning. Commits that the server has lost since are told to the next one.
    const { records } = state
    state = await walk(tundish, target, state, options)
    state.records += records
  }
  await target.complete()
  return state
}

async function walk(tundish: Tundish, target: Target, initial: State | undefined, options: RunOptions): Promise<State> {
  const { url, signal, onProgress, onVoid } = options
  if (initial && initial.url !== url) {
    throw new Refusal(`This copy is of ${initial.url}, not of ${url}: name another target, or the same server.`)
  }
  let { project = null, project_created_at = null } = initial ?? {}
  let since = initial?.since ?? null
  let records = initial?.cursor ? initial.records : 0
  let state = initial
  const at = (cursor: string | null): State => ({ url, project, project_created_at, since, cursor, records })
  let batch: Collected = new Map()
  let batchSize = 0
  const writer = openWriter(target)
  const from = {
    since: since ?? undefined,
    cursor: initial?.cursor ?? undefined,
    projectCreatedAt: project_created_at ?? undefined,
    signal,
    parse: (line: string) => readLine(line, url),
  }
  try {
    for await (const page of tundish.changePages(from)) {
      project = sameProject(project, page.project ?? null)
      const createdAt = page.projectCreatedAt ?? project_created_at
      const isNew = project_created_at !== null && createdAt !== project_created_at
      // A copy by an older version: the client compares with any other instant than that of the project.
      if (project_created_at === null && since !== null && createdAt !== null && since < createdAt)
        return await walk(tundish, target, { ...initial!, project_created_at: since }, options)
      project_created_at = createdAt
      if ('voidFrom' in page) {
        await writer.stored()
        ;[batch, batchSize] = [new Map(), 0]
        since = null
        records = 0
        const after = at(null)
        await target.forget(page.voidFrom, state, after)
        state = after
        onVoid?.(isNew ? { project: project!, createdAt: createdAt! } : { from: page.voidFrom })
        continue
      }
      collect(batch, page)
      records += page.changes.length
      batchSize += page.changes.length
      const isEnd = 'horizon' in page
      if (!isEnd && batchSize < BATCH) continue
      if (isEnd) since = page.horizon
      const after = at(isEnd ? null : page.cursor)
      await writer.store(batch, state, after, onProgress)
      state = after
      ;[batch, batchSize] = [new Map(), 0]
    }
    await writer.stored()
  } finally {
    // The target is closed after this.
    await writer.stored().catch(() => {})
  }
  return state!
}

/** A key of another project would add its changes to the copy, and leave out those before the copy's horizon. */
function sameProject(copied: string | null, sent: string | null): string | null {
  if (copied !== null && sent !== null && copied !== sent)
    throw new Refusal(
      `This copy is of the project "${copied}", and the key is of "${sent}": name another target, or give a key of that project.`,
    )
  return sent ?? copied
}

function readLine(line: string, url: string): unknown {
  try {
    return readExact(line)
  } catch {
    throw new Refusal(`The response of ${url} is not that of Tundish: check the address.`)
  }
}

/** Stores each batch while the next one is read. */
function openWriter(target: Target) {
  let storing = Promise.resolve()
  return {
    /** Resolves when the previous batch is stored, or rejects with its error. */
    async store(batch: Batch, before: State | undefined, after: State, onProgress: RunOptions['onProgress']) {
      await storing
      storing = target.store(batch, before, after).then(() => onProgress?.(after.records))
      storing.catch(() => {})
    },
    stored: () => storing,
  }
}

type Collected = Map<Table, Map<string, Row[]>>

/** Collects the records of a page. If a record appears twice, the last one counts; an import of history may cause that. */
function collect(batch: Collected, { changes }: ChangePage): void {
  for (const { list, item } of changes) {
    for (const table of tablesOf.get(list)!) {
      const groups = batch.get(table) ?? new Map<string, Row[]>()
      batch.set(table, groups.set(...table.rows(item)))
    }
  }
}

/** The number of records that a run is going to read, for its progress. */
export async function countChanges(tundish: Tundish, since: string | null): Promise<number> {
  const window = since === null ? {} : { updatedFrom: since }
  const lists = [
    tundish.funnels.list({ ...window, deleted: true }),
    tundish.experiments.list(window),
    tundish.products.list(window),
    tundish.profiles.list(window),
    tundish.sessions.list(window),
    tundish.replies.list(window),
    tundish.subscriptions.list(window),
    tundish.transactions.list(window),
  ]
  const totals = await Promise.all(lists.map((list) => list.total()))
  return totals.reduce((sum, total) => sum + total, 0)
}
