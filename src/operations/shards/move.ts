// Moves an organization to another shard while it is served: its requests are refused only during the last step.
import { setTimeout as sleep } from 'node:timers/promises'
import { releaseIds } from '../../core/tenants/reserved-ids.ts'
import { Refusal, UsageError } from '../../lib/errors.ts'
import { isUnavailable } from '../../lib/pg/errors.ts'
import { inTransaction } from '../../lib/pg/in-transaction.ts'
import { readProjects, reserve, takeMoveLock } from './admission.ts'
import { raiseClocks, readClocks, shiftQueues } from './clocks.ts'
import {
  type Connection,
  copyRows,
  countRows,
  interruptedError,
  removeRows,
  skipForeignKeyChecks,
  withBoth,
} from './connection.ts'
import { checkReplication, endCopy, finishCopy, startCopy } from './copy-ahead.ts'
import { lackingOf } from './difference.ts'
import { markOf, takeBack, takeBackAll } from './give-up.ts'
import { hold, projectsOf, untilChargesEnd } from './hold.ts'
import { close, countAsErasure, endKeys, giveKeysBack, hasArrived, type Mark, noteArrival, setMark } from './mark.ts'
import { removeOrganization } from './remove-organization.ts'
import type { Shard } from './shard.ts'
import { type TenantTable, tenantTables } from './tenant-tables.ts'

export interface Move {
  organization: string
  from: Shard
  to: Shard
  /** Called before each step, which waits for its promise. */
  say(step: string): void | Promise<void>
}

export interface Moved {
  rows: number
  /** How long requests of the organization were refused or waited. */
  refusedMs: number
}

// Directories look twice a second; HAProxy then needs a moment.
const NOTICE_MS = 1500
// How long a process trusts a key without asking for it again, and some more.
const TRUSTED_MS = 1200
// How long PostgreSQL may still run the last statement of a connection that was closed.
const FORMER_MS = 10_000

/** Moves it, or finishes or takes back a move that was interrupted. Throws a `Refusal`; then the old shard serves it. */
export const move = (move: Move): Promise<Moved> =>
  withBoth([move.from, move.to], async (from, to) => {
    for (const one of [from, to]) await takeMoveLock(one, move.organization)
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
  await inTransaction(target.query, () => reserve(target, organization, moving.projects))
  try {
    await endCopy(source, target, organization)
    await removeRows(target, ahead)
    await say('Copying')
    if (moving.projects.length > 0) await startCopy(source, target, organization, ahead)
    const startMs = performance.now()
    await say('Stopping requests')
    const mark = await setMark(source.query, organization, moving.to.name)
    await sleep(NOTICE_MS)
    const marked = await inTransaction(source.query, () => endKeys(source.query, organization, mark))
    await sleep(TRUSTED_MS)
    await untilChargesEnd(source, organization)
    await close(source.query, organization)
    return await cutOver(moving, marked, startMs)
  } catch (error) {
    await giveUp(moving).catch((second) => {
      throw isExpected(second) ? interruptedError(organization, error) : second
    })
    throw isUnavailable(error) ? interruptedError(organization, error) : error
  }
}

/** Locks all that can change the organization, copies the rest, commits on the new shard, and then removes the old rows. */
async function cutOver(moving: Moving, mark: Mark, startMs: number): Promise<Moved> {
  const { source, target, organization, tables, projects, say } = moving
  let refusedMs = 0
  let rows = 0
  await inTransaction(source.query, async () => {
    await say('Locking')
    await hold(source, tables, organization, projects)
    if (projects.length > 0) await finishCopy(source, target, organization)
    await endCopy(source, target, organization)
    await say('Copying the rest')
    const clocks = await readClocks(source, target)
    await inTransaction(target.query, async () => {
      await copyRest(source, target, tables)
      await giveKeysBack(target.query, organization, mark)
      await raiseClocks(target, organization, projects, clocks)
      await shiftQueues(target, organization, projects, clocks)
      rows = await compare(source, target, tables)
      await releaseIds(target.query, organization)
      await noteArrival(target.query, organization, mark)
      await countAsErasure(target.query, projects)
      // Fails if its locks are lost: then another process may have given the move up.
      await source.query('select 1')
    })
    refusedMs = performance.now() - startMs
    await say('Waiting for the directories')
    await sleep(NOTICE_MS)
    await say('Removing the old rows')
    await stillThere(target, organization, mark)
    await removeOrganization(source, tables, organization)
  })
  return { rows, refusedMs }
}

/** Refuses where the new shard no longer has the organization, as after a restore: the old rows are the only ones. */
async function stillThere(target: Connection, organization: string, mark: Mark): Promise<void> {
  if (await hasArrived(target.query, organization, mark)) return
  throw new Refusal(`"${organization}" is no longer on ${target.shard.name}: its rows stay where they were.`)
}

/** A move whose organization is on the new shard already: only the old rows are left. */
async function finish(source: Connection, target: Connection, { organization }: Move): Promise<Moved> {
  const { charges, refunds } = await inTransaction(target.query, () => lackingOf(source, target, organization))
  if (charges + refunds > 0)
    throw new Refusal(
      `"${organization}" is on ${target.shard.name}, which lacks ${charges} charges and ${refunds} refunds that ${source.shard.name} has: "tundish shards remove ${organization} --from ${source.shard.name}" names them.`,
    )
  const tables = await tenantTables(source.query, organization, await projectsOf(source, organization))
  const rows = [...(await countRows(target, tables)).values()].reduce((sum, n) => sum + n, 0)
  await inTransaction(source.query, () => removeOrganization(source, tables, organization))
  await endCopy(source, target, organization)
  return { rows, refusedMs: 0 }
}

/** After a failure: the old shard serves it again, unless the new one has it already. */
async function giveUp(moving: Moving): Promise<void> {
  // What they were doing ends, and with it their locks: a commit under way is then done or undone.
  for (const one of [moving.source, moving.target]) await one.close()
  await withBoth([moving.from, moving.to], (source, target) => takeBackAll(source, target, moving, FORMER_MS))
}

const isExpected = (error: unknown) => isUnavailable(error) || error instanceof UsageError || error instanceof Refusal

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
