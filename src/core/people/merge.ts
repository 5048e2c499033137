// Merges two profiles of one person: the records of one move to the other, and its id stands for the other from then on.
import { hostname } from 'node:os'
import { Refusal } from '../../lib/errors.ts'
import type { Db } from '../../lib/pg/db.ts'
import { endWhenStalled } from '../../lib/pg/stalled.ts'
import type { Query } from '../../lib/pg/types.ts'
import { shorten } from '../../lib/text.ts'
import { type Actor, type Audit, addEntry } from '../audit/audit.ts'
import { targetsOf } from '../erasure/aliases.ts'
import { wipeMerged } from '../erasure/erasure.ts'
import { emitRecordEvents } from '../events/changes.ts'
import { notFound, requireProject } from '../tenants/exist.ts'
import { IMPORT_TURN } from '../tenants/import-turn.ts'
import { FILL, LEAVE, MARK_FIGURES, MOVED, MOVES } from './moves.ts'

/** How many records of each kind belong to a profile. */
export interface Belongings {
  sessions: number
  subscriptions: number
  transactions: number
  customers: number
}

export interface Pair {
  projectId: string
  /** The profile that ends. */
  from: string
  /** The profile that remains. */
  into: string
}

/** What a merge of these profiles would move. Throws as the merge does. */
export async function previewMerge(query: Query, pair: Pair): Promise<Belongings> {
  await requireMergeable(query, pair)
  return belongingsOf(query, pair.projectId, pair.from)
}

/**
 * Merges `from` into `into` and returns what was moved. Throws a 404 `ApiError` if one of them is not a profile of the
 * project, and a `Refusal` if one is erased, or was merged before.
 */
export async function mergeProfiles(
  { db, audit }: { db: Db; audit: Audit },
  actor: Actor,
  pair: Pair,
): Promise<Belongings> {
  const { projectId, from, into } = pair
  const { head, moved } = await db.tx(async (query, commit) => {
    await endWhenStalled(query)
    await lockBoth(query, pair)
    await requireMergeable(query, pair)
    const moved = await mergeIn(query, pair)
    const entry = { action: 'profiles.merged', target: `project ${projectId}`, after: { from, into, ...moved } }
    return { head: await audit.append({ query, commit }, actor, entry), moved }
  })
  await audit.confirm(head)
  await moveLate(db, pair)
  return moved
}

/**
 * Merges in the caller's transaction; `moveLate` or `finishMerges` has to follow its commit. Into an erased profile, too: then the other is erased
 * by it.
 */
export async function mergeIn(query: Query, pair: Pair): Promise<Belongings> {
  const { projectId, from, into } = pair
  const base = await lockBoth(query, pair)
  const moved = await belongingsOf(query, projectId, from)
  const [remaining] = await query('select anonymized_at from profiles where project_id = $1 and id = $2', [
    projectId,
    into,
  ])
  const isErased = remaining!.anonymized_at !== null
  await query(MARK_FIGURES, [projectId, from, into])
  for (const statement of [...(isErased ? [] : FILL), ...MOVES, ...LEAVE]) await run(query, statement, pair, base)
  if (isErased) await wipeMerged(query, projectId, into, base)
  else await emitRecordEvents(query, projectId, 'profile.updated', [into, from])
  return moved
}

/** Waits for the turn of an import, which relies on the profiles that it found, and locks both. Returns the least stamp. */
async function lockBoth(query: Query, { projectId, from, into }: Pair): Promise<string> {
  await query(`select pg_advisory_xact_lock${IMPORT_TURN}`, [await requireProject(query, projectId)])
  const [begun] = await query<{ base: string }>('select begin_write($1) as base', [projectId])
  await query(LOCK, [projectId, from, into])
  return begun!.base
}

/** After the commit of an import that merged profiles: moves records that were written since, and adds an entry for each to the audit log. */
export async function finishMerges({ db, audit }: { db: Db; audit?: Audit }, pairs: Pair[]): Promise<void> {
  for (const pair of pairs) await moveLate(db, pair)
  for (const { projectId, from, into } of audit ? pairs : [])
    await addEntry({ db, audit: audit! }, importer(), {
      action: 'profiles.merged',
      target: `project ${projectId}`,
      after: { from, into },
    })
}

const importer = (): Actor => ({ kind: 'tundish', id: 'import', source: hostname() })

/**
 * Moves what concurrent transactions wrote, which had read the former profile of a customer: call it after the commit. They
 * hold a lock of that profile until they end.
 */
async function moveLate(db: Db, pair: Pair): Promise<void> {
  const { projectId, from, into } = pair
  await db.tx(async (query) => {
    await endWhenStalled(query)
    const [begun] = await query<{ base: string }>('select begin_write($1) as base', [projectId])
    await query(LOCK, [projectId, from, into])
    const left = await belongingsOf(query, projectId, from)
    if (Object.values(left).every((n) => n === 0)) return
    await query(MARK_FIGURES, [projectId, from, into])
    for (const statement of MOVES) await run(query, statement, pair, begun!.base)
  })
}

const LOCK = 'select from profiles where project_id = $1 and id in ($2, $3) order by id for update'

const run = (query: Query, statement: string, { projectId, from, into }: Pair, base: string) =>
  query(statement, [projectId, from, into, ...(statement.includes('$4') ? [base] : [])])

async function requireMergeable(query: Query, { projectId, from, into }: Pair): Promise<void> {
  if (from === into) throw new Refusal(`Profile "${shorten(from, 64)}" cannot be merged into itself: give two ids.`)
  const rows = await query('select id, anonymized_at from profiles where project_id = $1 and id in ($2, $3)', [
    projectId,
    from,
    into,
  ])
  const targets = await targetsOf(query, projectId, [from, into])
  const ofId = (id: string) => rows.find((one) => one.id === id)
  const unknown = [from, into].find((id) => !ofId(id) && !targets.has(id))
  if (unknown !== undefined) throw notFound('profile', unknown)
  for (const id of [from, into]) {
    const target = targets.get(id)
    if (target !== undefined) throw new Refusal(`"${id}" was merged into "${target}": name that profile.`)
    if (ofId(id)!.anonymized_at !== null)
      throw new Refusal(`"${id}" is erased, and an erased profile cannot be merged: erase the other one, too.`)
  }
}

async function belongingsOf(query: Query, projectId: string, profileId: string): Promise<Belongings> {
  const [row] = await query(
    `select ${MOVED.map((table) => `(select count(*) from ${table} where project_id = $1 and profile_id = $2) as ${table}`)}`,
    [projectId, profileId],
  )
  const { sessions, subscriptions, transactions, customers } = row!
  return {
    sessions: Number(sessions),
    subscriptions: Number(subscriptions),
    transactions: Number(transactions),
    customers: Number(customers),
  }
}
