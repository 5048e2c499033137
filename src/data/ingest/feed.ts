// Writes the records of small calls: those of a project that come meanwhile share one transaction.
import type { App } from '../../app.ts'
import type { RejectCode } from '../../core/records/import/fields.ts'
import type { Kind, Scope } from '../../core/records/record.ts'
import { KINDS } from '../../core/records/records.ts'
import { IMPORT_TURN } from '../../core/tenants/import-turn.ts'
import { tryLater } from '../../lib/errors.ts'
import { createFairQueue } from '../../lib/fair-queue.ts'
import type { Db } from '../../lib/pg/db.ts'
import { isClash, isLockTimeout, isMoving } from '../../lib/pg/errors.ts'
import { apply } from './apply.ts'
import { rejectMisfits } from './check.ts'
import { wipeLinked } from './erased.ts'
import { type FeedSession, openFeedSessions, stageRows } from './feed-session.ts'
import { openLatest } from './reading.ts'
import { columnsOf, type Row } from './row.ts'
import { PATIENCE } from './slots.ts'
import { REJECTED, type StagedKind } from './staging.ts'
import { openStatistics } from './statistics.ts'

/** A record of a call, with its place there. */
export interface FeedRow extends Row {
  place: number
}

export interface FeedReject {
  place: number
  code: RejectCode
  reason: string
}

export interface FeedCall {
  projectId: string
  organizationId: string
  rows: FeedRow[]
  /** Whether events are written. */
  emitEvents: boolean
  /** Whether the other records are written if some are bad. */
  skipBad: boolean
}

export interface FeedResult {
  written: number
  unchanged: number
  skipped: number
  erased: number
  /** Records that refer to unknown ones, or belong to another project. If they are not skipped, nothing was written. */
  rejects: FeedReject[]
}

export interface Feed {
  /** Writes the records of a call, all or none. Throws a 503 when other imports of the organization take too long. */
  write(call: FeedCall): Promise<FeedResult>
  /** The latest time that a record may have. */
  latest(): Promise<string>
  close(): Promise<void>
}

interface Waiting {
  call: FeedCall
  resolve(result: FeedResult): void
  reject(error: unknown): void
}

// Enough that each call shares the cost of the statements and the commit; few enough that one batch takes milliseconds.
const MAX_CALLS = 64
const MAX_ROWS = 2000
// Bounds the memory of a process.
const MAX_WAITING_ROWS = 100_000
// Sessions of a process; the batches of a project run one after the other.
const SESSIONS = 3
const TRIES = 3
const CLOCK_MS = 60_000

export function openFeed({ db, log }: Pick<App, 'db' | 'log'>): Feed {
  const sessions = openFeedSessions(db)
  const turns = createFairQueue(SESSIONS, SESSIONS)
  const statistics = openStatistics(log)
  /** The calls of each project that has a batch under way. */
  const lines = new Map<string, Waiting[]>()
  let waitingRows = 0
  let clock: { latest: Promise<() => string>; sinceMs: number } | undefined

  async function serve(projectId: string, line: Waiting[]): Promise<void> {
    while (line.length > 0) {
      const batch = takeBatch(line)
      try {
        const results = await writeBatch(batch.map(({ call }) => call))
        for (const [n, { resolve }] of batch.entries()) resolve(results[n]!)
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
      for (const { call } of batch) waitingRows -= call.rows.length
    }
    lines.delete(projectId)
  }

  /** Writes the calls without a bad record; each result is that of a call alone. */
  async function writeBatch(calls: FeedCall[]): Promise<FeedResult[]> {
    const results = new Map<FeedCall, FeedResult>()
    let left = calls
    while (left.length > 0) {
      const outcomes = await writeInTurn(left)
      for (const [n, call] of left.entries()) if (outcomes[n]) results.set(call, outcomes[n])
      // What a call alone lacks is known when it was tried with others: they can only add records.
      left = left.filter((call) => !results.has(call))
    }
    return calls.map((call) => results.get(call)!)
  }

  async function writeInTurn(calls: FeedCall[]): Promise<(FeedResult | undefined)[]> {
    const { organizationId } = calls[0]!
    const endMs = performance.now() + PATIENCE.ms
    for (let attempt = 1; ; ) {
      const run = () => sessions.use((session) => writeOnce({ db, statistics }, session, calls))
      try {
        const outcomes = await turns.run(organizationId, 1, run, PATIENCE)
        if (outcomes) return outcomes
      } catch (error) {
        if (isLockTimeout(error)) throw tryLater('write_conflict', CONFLICT)
        if (isMoving(error) || !isClash(error) || attempt++ === TRIES) throw error
      }
      // A large import of the organization is writing.
      if (performance.now() > endMs) throw PATIENCE.error()
      await new Promise((resolve) => setTimeout(resolve, 5 + Math.random() * 20))
    }
  }

  return {
    write: (call) =>
      new Promise((resolve, reject) => {
        if (waitingRows >= MAX_WAITING_ROWS) return reject(PATIENCE.error())
        waitingRows += call.rows.length
        const line = lines.get(call.projectId)
        if (line) return line.push({ call, resolve, reject })
        const begun = [{ call, resolve, reject }]
        lines.set(call.projectId, begun)
        setImmediate(() => void serve(call.projectId, begun))
      }),
    async latest() {
      if (!clock || performance.now() - clock.sinceMs > CLOCK_MS) {
        const latest = openLatest(db.query)
        clock = { latest, sinceMs: performance.now() }
        latest.catch(() => {
          clock = undefined
        })
      }
      return (await clock.latest)()
    },
    close: sessions.close,
  }
}

const CONFLICT = 'A concurrent request changed the same data. Nothing was written: try again.'

/** The next calls that can share a transaction, in their order. */
function takeBatch(line: Waiting[]): Waiting[] {
  let rows = 0
  const { emitEvents } = line[0]!.call
  const end = line.findIndex(({ call }, n) => {
    rows += call.rows.length
    return n > 0 && (n >= MAX_CALLS || rows > MAX_ROWS || call.emitEvents !== emitEvents)
  })
  return line.splice(0, end < 0 ? line.length : end)
}

// The tenant and the stamp are settings of the transaction, so that a prepared statement serves all projects. As subqueries, so
// that a plan is not made for the size of one project.
const setting = (name: string, type = 'text') => `(select current_setting('tundish.feed_${name}')::${type})`
const SCOPE: Scope = {
  project_id: setting('project'),
  organization_id: setting('organization'),
  stamp: setting('stamp', 'timestamptz'),
  live: true,
}

const ENTER = `
  select set_config('tundish.feed_project', $1, true), set_config('tundish.feed_organization', $2, true),
    set_config('tundish.feed_stamp', begin_write($1)::text, true) as base,
    pg_try_advisory_xact_lock${IMPORT_TURN.replace('$1', '$2')} as mine`
const REJECTS = `select source, line, code, reason from ${REJECTED} order by step, source, line`

/**
 * Writes the calls in one transaction. Undefined if another import of the organization is writing; if calls are bad, only
 * these have results, and nothing is written.
 */
async function writeOnce(
  { db, statistics }: { db: Db; statistics: ReturnType<typeof openStatistics> },
  { query, prepare }: FeedSession,
  calls: FeedCall[],
): Promise<(FeedResult | undefined)[] | undefined> {
  const { projectId, organizationId, emitEvents } = calls[0]!
  const brought = group(calls)
  for (const { kind } of brought) await prepare(kind)
  const [, [entered], , , rejected] = await Promise.all([
    query('begin'),
    query<{ base: string; mine: string }>(ENTER, [projectId, organizationId]),
    Promise.all(brought.map(({ kind, json }) => query(stageRows(kind), [json]))),
    rejectMisfits(query, brought, SCOPE),
    query(REJECTS),
  ])
  if (entered!.mine !== 't') {
    await query('rollback')
    return undefined
  }
  const rejects = Map.groupBy(rejected, ({ source }) => Number(source))
  const rejectsOf = (source: number): FeedReject[] =>
    (rejects.get(source) ?? []).map(({ line, code, reason }) => ({
      place: Number(line),
      code: code as RejectCode,
      reason: reason!,
    }))
  if (calls.some(({ skipBad }, n) => !skipBad && rejects.has(n + 1))) {
    await query('rollback')
    return calls.map(({ skipBad }, n) =>
      !skipBad && rejects.has(n + 1) ? { ...NOTHING, rejects: rejectsOf(n + 1) } : undefined,
    )
  }
  const writing = { projectId, base: entered!.base, emitEvents, done() {} }
  const { tally, linked } = await apply(query, brought, SCOPE, writing)
  await query('commit')
  await statistics.added(query, brought)
  if (linked.length > 0) await wipeLinked(db, query, { projectId, organizationId }, linked)
  return calls.map(({ rows }, n) => {
    const counts = tally.of(n + 1)
    const bad = rejectsOf(n + 1)
    const written = rows.length - bad.length - counts.skipped - counts.erased - counts.unchanged
    return { written, ...counts, rejects: bad }
  })
}

const NOTHING = { written: 0, unchanged: 0, skipped: 0, erased: 0 }

interface Brought extends StagedKind {
  /** The rows as a JSON array. */
  json: string
}

/** The rows of all calls by kind, in the order of their references. */
function group(calls: FeedCall[]): Brought[] {
  const rows = new Map<Kind, string[]>()
  const needing = new Set<Kind>()
  const merged = new Set<Kind>()
  for (const [n, call] of calls.entries()) {
    for (const row of call.rows) {
      const list = rows.get(row.kind) ?? []
      rows.set(row.kind, list)
      list.push(asJson(row, n + 1))
      if (row.given !== null) merged.add(row.kind)
      if (row.needsStored) needing.add(row.kind)
    }
  }
  return KINDS.flatMap((kind) => {
    const list = rows.get(kind)
    if (!list) return []
    const json = `[${list.join(',')}]`
    return [{ kind, rows: list.length, merged: merged.has(kind), needsStored: needing.has(kind), json }]
  })
}

/** A row as an object of its columns. The text of JSON columns goes in as it is, down to the digits of its numbers. */
function asJson({ kind, values, given, place }: FeedRow, source: number): string {
  const fields = columnsOf(kind).flatMap(({ name, json }, n) => {
    const value = values[n]!
    return value === null ? [] : [`"${name}":${json ? value : JSON.stringify(value)}`]
  })
  return `{${[...fields, ...(given === null ? [] : [`"given":"${given}"`]), `"source":${source},"line":${place}`].join(',')}}`
}
