// Moves an organization to another shard while it is served: its writes stand still only for the last step.
import { setTimeout as sleep } from 'node:timers/promises'
import { Refusal, UsageError } from '../lib/errors.ts'
import { isUnavailable } from '../lib/pg/errors.ts'
import { releaseIds } from '../tenants/reserved-ids.ts'
import { alone, readProjects, reserve } from './admission.ts'
import {
  brokenOff,
  type Connection,
  copyRows,
  countRows,
  inTransaction,
  removeRows,
  skipForeignKeyChecks,
  withBoth,
} from './connection.ts'
import { checkReplication, endCopy, finishCopy, startCopy } from './copy-ahead.ts'
import { markOf, takeBack, takeBackAll } from './give-up.ts'
import { hold, projectsOf, untilCharged } from './hold.ts'
import { fence, giveKeysBack, hasArrived, type Mark, noteArrival, removeArrival, removeMark, setMark } from './mark.ts'
import type { Shard } from './shard.ts'
import { type TenantTable, tenantTables } from './tenant-tables.ts'

export interface Move {
  organization: string
  from: Shard
  to: Shard
  /** Told before each step, which waits for it. */
  say(step: string): void | Promise<void>
}

export interface Moved {
  rows: number
  /** How long requests of the organization were refused or waited. */
  stoodStillMs: number
}

// Directories look twice a second; HAProxy then needs a moment.
const NOTICE_MS = 1500
// How long a process trusts a key without asking for it again, and some more.
const TRUSTED_MS = 1200
// How long a connection that was closed may still be at its last statement.
const FORMER_MS = 10_000

/** Moves it, or finishes or takes back a move that was interrupted. Throws a `Refusal`; then the old shard serves it. */
export const move = (move: Move): Promise<Moved> =>
  withBoth([move.from, move.to], async (from, to) => {
    for (const one of [from, to]) await alone(one, move.organization)
    for (const one of [from, to]) if (!(await skipForeignKeyChecks(one))) await move.say(checkedAt(one.shard))
    const interrupted = await markOf(from, move)
    if (interrupted && (await hasArrived(to.query, move.organization, interrupted))) return await finish(from, to, move)
    await takeBack(from, move.organization, interrupted)
    const projects = await readProjects(from, to, move.organization)
    const tables = await tenantTables(from.query, move.organization, projects)
    return await moveAll({ ...move, tables, source: from, target: to, projects })
  })

const checkedAt = ({ name }: Shard) =>
  `Foreign keys are checked on ${name}, which takes longer. To leave that out: grant set on parameter session_replication_role to its role.`

interface Moving extends Move {
  tables: TenantTable[]
  projects: string[]
  source: Connection
  target: Connection
}

async function moveAll(moving: Moving): Promise<Moved> {
  const { source, target, organization, tables, say } = moving
  await checkReplication(source, target)
  const ahead = tables.filter((table) => table.ahead)
  await inTransaction(target, () => reserve(target, organization, moving.projects))
  try {
    await endCopy(source, target, organization)
    await removeRows(target, ahead)
    await say('Copying')
    if (moving.projects.length > 0) await startCopy(source, target, organization, ahead)
    const startMs = performance.now()
    await say('Stopping requests')
    const mark = await setMark(source.query, organization, moving.to.name)
    await sleep(NOTICE_MS)
    const fenced = await inTransaction(source, () => fence(source.query, organization, mark))
    await sleep(TRUSTED_MS)
    await untilCharged(source, organization)
    return await cutOver(moving, fenced, startMs)
  } catch (error) {
    await giveUp(moving).catch((second) => {
      throw isExpected(second) ? brokenOff(organization, error) : second
    })
    throw isUnavailable(error) ? brokenOff(organization, error) : error
  }
}

/** Holds all that can change the organization, copies the rest, and lets the new shard begin before the old rows are removed. */
async function cutOver(moving: Moving, mark: Mark, startMs: number): Promise<Moved> {
  const { source, target, organization, tables, projects, say } = moving
  let stoodStillMs = 0
  let rows = 0
  await inTransaction(source, async () => {
    await say('Locking')
    await hold(source, tables, organization, projects)
    if (projects.length > 0) await finishCopy(source, target, organization)
    await endCopy(source, target, organization)
    await say('Copying the rest')
    const [now] = await source.query('select db_clock() as at')
    await inTransaction(target, async () => {
      await copyRest(source, target, tables)
      await giveKeysBack(target.query, organization, mark)
      await raiseClocks(target, organization, projects, now!.at!)
      rows = await compare(source, target, tables)
      await releaseIds(target.query, organization)
      await noteArrival(target.query, organization, mark)
    })
    stoodStillMs = performance.now() - startMs
    await say('Waiting for the directories')
    await sleep(NOTICE_MS)
    await say('Removing the old rows')
    await removeAll(source, tables, organization)
  })
  return { rows, stoodStillMs }
}

/** A move whose organization is on the new shard already: only the old rows are left. */
async function finish(source: Connection, target: Connection, { organization }: Move): Promise<Moved> {
  const tables = await tenantTables(source.query, organization, await projectsOf(source, organization))
  const rows = [...(await countRows(target, tables)).values()].reduce((sum, n) => sum + n, 0)
  await inTransaction(source, () => removeAll(source, tables, organization))
  await endCopy(source, target, organization)
  return { rows, stoodStillMs: 0 }
}

/** After a failure: the old shard serves it again, unless the new one has it already. */
async function giveUp(moving: Moving): Promise<void> {
  // What they were doing ends, and with it their locks: a commit under way is then done or undone.
  for (const one of [moving.source, moving.target]) await one.close()
  await withBoth([moving.from, moving.to], (source, target) => takeBackAll(source, target, moving, FORMER_MS))
}

const isExpected = (error: unknown) => isUnavailable(error) || error instanceof UsageError || error instanceof Refusal

/** Nothing is stamped earlier than on the old shard, whatever the clock of the new one says. */
async function raiseClocks({ query }: Connection, organization: string, projects: string[], at: string): Promise<void> {
  await query(
    'update project_clocks set floor = greatest(floor, $2::timestamptz, db_clock()) where project_id = any($1)',
    [projects, at],
  )
  await query(
    `update organization_clocks set last_trx_created_at = greatest(last_trx_created_at, $2::timestamptz)
     where organization_id = $1`,
    [organization, at],
  )
}

/** Copies the tables that were not copied ahead. Empty ones are left out: `compare` finds a row that was added since. */
async function copyRest(source: Connection, target: Connection, tables: readonly TenantTable[]): Promise<void> {
  const rest = tables.filter(({ ahead }) => !ahead)
  const counts = await countRows(source, rest)
  for (const table of rest) if (counts.get(table.name)! > 0) await copyRows(source, target, table)
}

async function compare(source: Connection, target: Connection, tables: readonly TenantTable[]): Promise<number> {
  const [there, here] = await Promise.all([countRows(source, tables), countRows(target, tables)])
  const other = tables.find(({ name }) => there.get(name) !== here.get(name))
  if (other)
    throw new Error(`Bug: ${other.name} has ${there.get(other.name)} rows there and ${here.get(other.name)} here.`)
  return [...here.values()].reduce((sum, n) => sum + n, 0)
}

async function removeAll(source: Connection, tables: readonly TenantTable[], organization: string): Promise<void> {
  await source.query('delete from key_usage where key_id in (select id from secret_keys where organization_id = $1)', [
    organization,
  ])
  await removeRows(source, tables)
  await removeMark(source.query, organization)
  await removeArrival(source.query, organization)
}
