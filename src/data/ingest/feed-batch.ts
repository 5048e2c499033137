// Writes the records of several calls of a project in one transaction.

import { finishMerges } from '../../core/people/merge.ts'
import type { RejectCode } from '../../core/records/import/fields.ts'
import type { Kind, Scope } from '../../core/records/record.ts'
import { KINDS } from '../../core/records/records.ts'
import { IMPORT_TURN } from '../../core/tenants/import-turn.ts'
import { apply, examine } from './apply.ts'
import { rejectMisfits } from './check.ts'
import { wipeLinked } from './erased.ts'
import { type FeedSession, stageRows } from './feed-session.ts'
import type { Importing } from './load.ts'
import { columnsOf, type Row } from './row.ts'
import { REJECTED, type StagedKind } from './staging.ts'
import type { openStatistics } from './statistics.ts'

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

// The tenant and the stamp are settings of the transaction, so that a prepared statement serves all projects. As subqueries, so
// that a plan is not made for the size of one project.
const setting = (name: string, type = 'text') => `(select current_setting('tundish.feed_${name}')::${type})`
const SCOPE: Scope = {
  project_id: setting('project'),
  organization_id: setting('organization'),
  stamp: setting('stamp', 'timestamptz'),
  live: true,
}

// PostgreSQL shows what a session has added once a second while it is busy, else after ten seconds. Until `openStatistics` sees that a
// table has grown, plans may be made for an empty one: each line would read all records of the project.
const MANY_ROWS = 100
// While another import of the organization writes, the statements that follow have an empty tenant, in which they find and lock nothing.
const ENTER = `
  with turn as materialized (
    select begin_write($1)::text as base, pg_try_advisory_xact_lock${IMPORT_TURN.replace('$1', '$2')} as mine)
  select mine, set_config('tundish.feed_stamp', base, true) as base,
    set_config('tundish.feed_project', case when mine then $1 else '' end, true),
    set_config('tundish.feed_organization', case when mine then $2 else '' end, true),
    case when $3::int >= ${MANY_ROWS} then pg_stat_force_next_flush() end
  from turn`
const REJECTS = `select source, line, code, reason from ${REJECTED} order by step, source, line`

/**
 * Writes the calls in one transaction. Undefined if another import of the organization is writing; if calls are bad, only
 * these have results, and nothing is written.
 */
export async function writeOnce(
  { db, audit, statistics }: Importing & { statistics: ReturnType<typeof openStatistics> },
  { query, prepare }: FeedSession,
  calls: FeedCall[],
): Promise<(FeedResult | undefined)[] | undefined> {
  const { projectId, organizationId, emitEvents } = calls[0]!
  const brought = group(calls)
  for (const { kind } of brought) await prepare(kind)
  // Sent together: the connection runs them in this order.
  const [, [entered], , , rejected, examined] = await Promise.all([
    query('begin'),
    query<{ base: string; mine: string }>(ENTER, [
      projectId,
      organizationId,
      calls.reduce((sum, { rows }) => sum + rows.length, 0),
    ]),
    Promise.all(brought.map(({ kind, json }) => query(stageRows(kind), [json]))),
    rejectMisfits(query, brought, SCOPE),
    query(REJECTS),
    examine(query, brought, SCOPE),
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
  const { tally, linked, merged, last } = await apply(query, brought, SCOPE, writing, examined)
  await Promise.all([...last, query('commit')])
  await statistics.added(query, brought)
  if (linked.length > 0) await wipeLinked(db, query, { projectId, organizationId }, linked)
  if (merged.length > 0) await finishMerges({ db, ...(audit && { audit }) }, merged)
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
  let text = '{'
  for (const [n, { name, json }] of columnsOf(kind).entries()) {
    const value = values[n]!
    if (value !== null) text += `"${name}":${json ? value : JSON.stringify(value)},`
  }
  if (given !== null) text += `"given":"${given}",`
  return `${text}"source":${source},"line":${place}}`
}
