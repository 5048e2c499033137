// Moves an organization to another shard while it is served: its writes stand still only for the last step.
import { setTimeout as sleep } from 'node:timers/promises'
import { identifier } from '../backup/sql-names.ts'
import { Refusal, UsageError } from '../lib/errors.ts'
import { isUnavailable } from '../lib/pg/errors.ts'
import {
  brokenOff,
  type Connection,
  connectTo,
  copyRows,
  countRows,
  inTransaction,
  runAll,
  skipForeignKeyChecks,
} from './connection.ts'
import { checkReplication, endCopy, finishCopy, startCopy } from './copy-ahead.ts'
import { hold, projectsOf, untilCharged } from './hold.ts'
import { fence, giveKeysBack, type Mark, readMarks, removeMark, setMark } from './mark.ts'
import type { Shard } from './shard.ts'
import { type TenantTable, tenantTables } from './tenant-tables.ts'

export interface Move {
  organization: string
  from: Shard
  to: Shard
  /** Told before each step. */
  say(step: string): void
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

/** Moves it, or finishes or takes back a move that was interrupted. Throws a `Refusal`; then the old shard serves it. */
export async function move(move: Move): Promise<Moved> {
  const from = await connectTo(move.from)
  const to = await connectTo(move.to)
  try {
    await alone(from, move.organization)
    for (const one of [from, to]) if (!(await skipForeignKeyChecks(one))) move.say(checkedAt(one.shard))
    const interrupted = (await readMarks(from.query)).get(move.organization)
    if (interrupted && interrupted.to !== move.to.name)
      throw new Refusal(`"${move.organization}" is on its way to ${interrupted.to}: move it there.`)
    if (interrupted && (await has(to, move.organization))) return await finish(from, to, move)
    if (interrupted) await takeBack(from, move.organization, interrupted)
    const projects = await readProjects(from, to, move)
    const tables = await tenantTables(from.query, move.organization, projects)
    return await moveAll({ ...move, tables, source: from, target: to, projects })
  } finally {
    await from.close()
    await to.close()
  }
}

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
  await endCopy(source, target, organization)
  await removeRows(target, ahead)
  try {
    say('Copying')
    if (moving.projects.length > 0) await startCopy(source, target, organization, ahead)
    const startMs = performance.now()
    say('Stopping requests')
    await setMark(source.query, organization, moving.to.name)
    await sleep(NOTICE_MS)
    await inTransaction(source, () => fence(source.query, organization, moving.to.name))
    await sleep(TRUSTED_MS)
    await untilCharged(source, organization)
    return await cutOver(moving, startMs)
  } catch (error) {
    await giveUp(moving, ahead).catch((second) => {
      throw isUnavailable(second) || second instanceof UsageError ? brokenOff(organization, error) : second
    })
    throw isUnavailable(error) ? brokenOff(organization, error) : error
  }
}

/** Holds all that can change the organization, copies the rest, and lets the new shard begin before the old rows are removed. */
async function cutOver(moving: Moving, startMs: number): Promise<Moved> {
  const { source, target, organization, tables, projects, say } = moving
  let stoodStillMs = 0
  let rows = 0
  await inTransaction(source, async () => {
    say('Locking')
    await hold(source, tables, organization, projects)
    if (projects.length > 0) await finishCopy(source, organization)
    await endCopy(source, target, organization)
    say('Copying the rest')
    const mark = (await readMarks(source.query)).get(organization)!
    const [now] = await source.query('select db_clock() as at')
    await inTransaction(target, async () => {
      await copyRest(source, target, tables)
      await giveKeysBack(target.query, organization, mark)
      await raiseClocks(target, organization, projects, now!.at!)
      rows = await compare(source, target, tables)
    })
    stoodStillMs = performance.now() - startMs
    say('Removing the old rows')
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

async function takeBack(source: Connection, organization: string, mark: Mark): Promise<void> {
  await inTransaction(source, async () => {
    await giveKeysBack(source.query, organization, mark)
    await removeMark(source.query, organization)
  })
}

/** After a failure: the old shard serves it again, unless the new one has it already. */
async function giveUp({ organization, ...moving }: Moving, ahead: TenantTable[]): Promise<void> {
  const source = await connectTo(moving.from)
  const target = await connectTo(moving.to)
  for (const one of [source, target]) await skipForeignKeyChecks(one)
  try {
    if (await has(target, organization)) return
    const mark = (await readMarks(source.query)).get(organization)
    if (mark) await takeBack(source, organization, mark)
    await endCopy(source, target, organization)
    await removeRows(target, ahead)
  } finally {
    await source.close()
    await target.close()
  }
}

// Class of the advisory locks of moves.
export const MOVE_LOCK = 7485

/** Refuses while another process moves it. */
async function alone({ query }: Connection, organization: string): Promise<void> {
  const [row] = await query(`select pg_try_advisory_lock(${MOVE_LOCK}, hashtext($1)) as alone`, [organization])
  if (row!.alone !== 't') throw new Refusal(`"${organization}" is being moved by another process.`)
}

/** The projects of the organization. Refuses when it is not on the one shard, or cannot be on the other. */
async function readProjects(from: Connection, to: Connection, { organization }: Move): Promise<string[]> {
  if (!(await has(from, organization)))
    throw new Refusal(`There is no organization "${organization}" on ${from.shard.name}.`)
  if (await has(to, organization))
    throw new Refusal(`There is an organization "${organization}" on ${to.shard.name} already.`)
  await sameSchema(from, to)
  const ids = await projectsOf(from, organization)
  const [taken] = await to.query('select id from projects where id = any($1)', [ids])
  if (taken) throw new Refusal(`There is a project "${taken.id}" of another organization on ${to.shard.name}.`)
  return ids
}

async function sameSchema(from: Connection, to: Connection): Promise<void> {
  const newest = async ({ query }: Connection) =>
    (await query('select max(version) as version from schema_migrations'))[0]!.version
  if ((await newest(from)) !== (await newest(to)))
    throw new Refusal('The shards have different migrations: run the same version of Tundish on both.')
}

async function has({ query }: Connection, organization: string): Promise<boolean> {
  return (await query('select 1 from organizations where id = $1', [organization])).length > 0
}

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
}

const removeRows = (connection: Connection, tables: readonly TenantTable[]): Promise<void> =>
  runAll(
    connection,
    tables.toReversed().map(({ name, condition }) => `delete from ${identifier(name)} where ${condition}`),
  )
