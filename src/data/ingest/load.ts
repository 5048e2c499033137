// Imports records: reads and validates every line, then writes all of them in one transaction, or none.
import pg from 'pg'
import type { App } from '../../app.ts'
import { finishMerges } from '../../core/people/merge.ts'
import type { Kind } from '../../core/records/record.ts'
import { Refusal } from '../../lib/errors.ts'
import type { Patience } from '../../lib/fair-queue.ts'
import type { Db } from '../../lib/pg/db.ts'
import { isRefusedData, isUnavailable, sqlState } from '../../lib/pg/errors.ts'
import { type Applied, apply, examine } from './apply.ts'
import { rejectMisfits } from './check.ts'
import { wipeLinked } from './erased.ts'
import { raiseClock } from './payments.ts'
import { type Progress, startProgress } from './progress.ts'
import { readSources, type Source } from './reading.ts'
import { rejectRefused } from './refused.ts'
import type { Reject, RejectedCount, RejectedLine } from './rejected.ts'
import { countByCode, countRejected, firstRejected, rejectedLines } from './rejected.ts'
import { type ImportResult, refused } from './result.ts'
import { type Connection, endTurn, keepTurn, openSession, waitForTurn } from './session.ts'
import { inSlot } from './slots.ts'
import { type StagedKind, Staging } from './staging.ts'
import { gatherStatistics, tablesOf } from './statistics.ts'

export type { Source } from './reading.ts'
export type { RejectedLine } from './rejected.ts'
export type { ImportResult } from './result.ts'

export interface ImportOptions {
  projectId: string
  /** Whether rows are stamped now, as a sync needs it, or keep the times of their lines. */
  live?: boolean
  /** Whether a line has only the fields that change, instead of replacing the record. */
  merge?: boolean
  /** Throws a `BadLine` for kinds of records that the caller may not write. */
  refuseKind?: (name: string) => void
  /** Whether new and changed subscriptions and new transactions are sent to webhooks. */
  emitEvents?: boolean
  /** Whether everything is validated and nothing stored. */
  dryRun?: boolean
  /** Whether bad lines are skipped, or fail the import. */
  skipBadLines?: boolean
  /** Receives the skipped lines, before anything is written. */
  saveRejected?: (lines: AsyncIterable<RejectedLine>) => Promise<void>
  /** How long it may wait for other imports of this process before it reads a line. Without it, without a limit. */
  patience?: Patience
  signal?: AbortSignal
  onProgress?: (progress: Progress) => void
  /** Called once with all rejected lines, also if nothing was written because of them. */
  onRejected?: (counts: RejectedCount[]) => void
}

/** With the audit log, merges of profiles are entered there. */
export type Importing = Pick<App, 'db' | 'log'> & Partial<Pick<App, 'audit'>>

/**
 * Imports the records of the sources into a project. When a line is bad nothing is written, unless bad lines are skipped.
 * Throws a `Refusal` if the project does not exist and when the import is aborted, and `Interrupted` if it may be repeated.
 */
export async function importRecords(
  app: Importing,
  options: ImportOptions,
  sources: Iterable<Source> | AsyncIterable<Source>,
): Promise<ImportResult> {
  const organizationId = await findOrganization(app.db, options.projectId)
  return inSlot(app.db, organizationId, () => importInSession(app, organizationId, options, sources), options.patience)
}

async function importInSession(
  { db, log, audit }: Importing,
  organizationId: string,
  options: ImportOptions,
  sources: Iterable<Source> | AsyncIterable<Source>,
): Promise<ImportResult> {
  const { projectId, signal } = options
  const connection = await openSession(db)
  const breakOff = () => void connection.client.end()
  signal?.addEventListener('abort', breakOff)
  try {
    signal?.throwIfAborted()
    const load: Load = {
      db,
      ...(audit && { audit }),
      connection,
      projectId,
      organizationId,
      options,
      log,
      progress: startProgress(options.onProgress),
    }
    return await carryOut(load, sources, () => signal?.removeEventListener('abort', breakOff))
  } catch (error) {
    if (error instanceof Refusal) throw error
    if (signal?.aborted) throw new Refusal(ABORTED)
    throw connection.isStalled(error) ? new Interrupted(STALLED) : error
  } finally {
    signal?.removeEventListener('abort', breakOff)
    connection.release(true)
  }
}

/** The import was interrupted by what need not happen again. */
export class Interrupted extends Refusal {}

interface Load {
  db: Db
  audit?: App['audit']
  connection: Connection
  projectId: string
  organizationId: string
  options: ImportOptions
  log: App['log']
  progress: (change: Partial<Progress>) => void
}

const ABORTED = 'The import was aborted: nothing was written.'
const STALLED =
  'The import stood still for seconds while others waited for it, so the database ended it: nothing was written. Import again.'
const REPORTED = 100
const TRIES = 3
const DEADLOCK = '40P01'

async function carryOut(
  load: Load,
  sources: Iterable<Source> | AsyncIterable<Source>,
  atCommit: () => void,
): Promise<ImportResult> {
  const { connection, options, progress } = load
  const { query } = connection
  const { skipBadLines = false, merge = false, refuseKind, saveRejected, signal } = options
  const staging = new Staging(connection, skipBadLines && saveRejected !== undefined)
  const onRead = (bytes: number, lines: number) => progress({ bytes, lines })
  const maxBadLines = skipBadLines ? Number.POSITIVE_INFINITY : REPORTED
  const { names, lines, stopped } = await readSources(sources, staging, query, {
    signal,
    maxBadLines,
    merge,
    refuseKind,
    onRead,
  })
  progress({ step: 'checking', lines })
  const kinds = await staging.finish()
  const reportRejected = async () => options.onRejected?.(await countByCode(query))
  if (stopped) await reportRejected()
  if (stopped) return { ...refused(lines, await firstRejected(query, names, REPORTED), REPORTED), stopped }
  await waitForTurn(connection, load.organizationId, () => progress({ step: 'waiting' }))
  let applied: Applied | 'refused' = 'refused'
  let rejected = 0
  let rejects: Reject[] = []
  while (applied === 'refused') {
    await rejectMisfits(query, kinds, tenantOf(load))
    rejected = await countRejected(query)
    rejects = await firstRejected(query, names, REPORTED)
    if (rejected > 0 && !skipBadLines) {
      await reportRejected()
      return refused(lines, rejects, rejected)
    }
    if (rejected > 0 && saveRejected) await keepTurn(connection, () => saveRejected(rejectedLines(query, names)))
    progress({ step: 'writing' })
    applied = await write(load, kinds, atCommit).catch((error) => rejectAndRepeat(load, kinds, names, error))
  }
  const { tally, linked, merged } = applied
  if (rejected > 0) await reportRejected().catch(throwLost)
  await endTurn(connection, load.organizationId).catch(throwLost)
  if (!options.dryRun) {
    await wipeLinked(load.db, query, load, linked).catch(throwLost)
    await finishMerges(load, merged).catch(throwLost)
    for (const { kind, rows } of kinds)
      for (const table of tablesOf(kind))
        await gatherStatistics(query, load.log, table, rows, [load.projectId, load.organizationId])
  }
  const { skipped, erased, unchanged } = tally.total()
  const written = lines - rejected - skipped - erased - unchanged
  return { read: lines, written, unchanged, skipped, erased, rejected, rejects }
}

/** After this the lines that the database refuses are rejected: writing the others can begin again. */
async function rejectAndRepeat(load: Load, kinds: StagedKind[], sources: string[], error: unknown): Promise<'refused'> {
  if (!isRefusedData(error)) throw error
  const { connection, options } = load
  await connection.query('rollback')
  const scope = { ...tenantOf(load), live: options.live === true }
  await rejectRefused(connection.query, kinds, scope, sources, error)
  return 'refused'
}

/** Runs the transaction, and repeats it after a deadlock: a rollback restores the staged rows. */
async function write(load: Load, kinds: StagedKind[], atCommit: () => void): Promise<Applied> {
  const { connection, options } = load
  const { query } = connection
  const brought = new Set(kinds.map(({ kind }) => kind.name))
  if (brought.has('payment') && !options.live && !options.dryRun) await raiseClock(query, tenantOf(load))
  for (let attempt = 1; ; attempt++) {
    try {
      const applied = await writeOnce(load, kinds)
      options.signal?.throwIfAborted()
      // From here on the database decides the outcome: aborting would leave it unknown.
      atCommit()
      await (options.dryRun ? query('rollback') : commit(load))
      return applied
    } catch (error) {
      if (attempt === TRIES || sqlState(error) !== DEADLOCK) throw error
      await query('rollback')
    }
  }
}

async function writeOnce(load: Load, kinds: StagedKind[]): Promise<Applied> {
  const { query } = load.connection
  await query('begin')
  const [begun] = await query<{ base: string }>('select begin_write($1) as base', [load.projectId])
  const { base } = begun!
  const scope = {
    ...tenantOf(load),
    stamp: `timestamptz ${pg.escapeLiteral(base)}`,
    live: load.options.live === true,
  }
  let rows = 0
  const done = (written: Kind) => {
    rows += kinds.find(({ kind }) => kind === written)!.rows
    load.progress({ rows })
  }
  const writing = { projectId: load.projectId, base, emitEvents: load.options.emitEvents === true, done }
  const applied = await apply(query, kinds, scope, writing, await examine(query, kinds, scope))
  await Promise.all(applied.last)
  return applied
}

async function commit({ connection }: Load): Promise<void> {
  await connection.query('commit').catch(throwLost)
}

function throwLost(error: unknown): never {
  if (!isUnavailable(error)) throw error
  throw new Interrupted(
    'The connection to the database was lost during the commit: everything was written, or nothing. Import again; records that are stored already stay unchanged.',
  )
}

/** The organization of a project. Throws a `Refusal` if there is no project with this id. */
export async function findOrganization(db: Db, projectId: string): Promise<string> {
  const [row] = await db.query('select organization_id from projects where id = $1', [projectId])
  if (!row) throw new Refusal(`There is no project "${projectId}".`)
  return row.organization_id!
}

function tenantOf({ projectId, organizationId }: Load) {
  return { project_id: pg.escapeLiteral(projectId), organization_id: pg.escapeLiteral(organizationId) }
}
