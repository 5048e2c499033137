// Erasure: permanently removes the personal data of profiles, and repeats erasures after a restore.
import type { Db } from '../../lib/pg/db.ts'
import { endWhenStalled } from '../../lib/pg/stalled.ts'
import type { Query } from '../../lib/pg/types.ts'
import { instantFromPg } from '../../lib/time.ts'
import type { Actor, Audit } from '../audit/audit.ts'
import { write as writeEvents } from '../events/outbox.ts'
import { aliasesOf, targetsOf } from './aliases.ts'
import { ON_BELONGINGS, ON_MERGED, ON_PERSONS } from './effects.ts'
import { type Erasure, enterInLedgers } from './ledger.ts'
import { REPEAT_AT_PROVIDER } from './provider-targets.ts'
import { findTwins, idsOf, keepTwins } from './twins.ts'

/** What an erasure did. */
export interface Outcome {
  /** The ids that are not profiles of the project, in the order given; if there are any, nothing was changed. */
  missing: string[]
  /** The erased profiles: those given and, if requested, their twins. */
  erased: string[]
  /** Living profiles that have the address or the customer of an erased one, sorted. */
  twins: string[]
}

interface Erasing {
  db: Db
  audit: Audit
  erasureLedger: string
}

/**
 * Erases these profiles of a project, all or nothing, and their twins `withTwins`. The ledger's file is on disk before the
 * database commits, and the audit log names the actor.
 */
export async function erase(
  { db, audit, erasureLedger }: Erasing,
  actor: Actor,
  projectId: string,
  given: string[],
  { withTwins = false }: { withTwins?: boolean } = {},
): Promise<Outcome> {
  const { head, ...outcome } = await db.tx(async (query, commit) => {
    const [, known] = await Promise.all([endWhenStalled(query), lockProfiles(query, projectId, given)])
    const missing = given.filter((id) => !known.has(id))
    if (missing.length > 0) return { missing, erased: [], twins: [] }
    const reached = withTwins ? idsOf(await findTwins(query, projectId, [...known.keys()])) : []
    const found = new Map([...known, ...(await lockProfiles(query, projectId, reached))])
    const ids = [...found.keys()]
    // Before the address is gone.
    const twins = await findTwins(query, projectId, ids)
    const erased_at = await wipe(query, projectId, found)
    await query(REPEAT_AT_PROVIDER, [projectId, ids])
    await keepTwins(query, projectId, twins)
    // Profiles that are erased already are entered too: they may have been imported as anonymized.
    await enterInLedgers(
      query,
      erasureLedger,
      ids.map((id) => ({ project_id: projectId, profile_id: id, erased_at })),
    )
    const entry = { action: 'profiles.erased', target: `project ${projectId}`, after: { profile_ids: ids } }
    const head = await audit.append({ query, commit }, actor, entry)
    return { missing, erased: ids, twins: idsOf(twins), head }
  })
  if (head) {
    await audit.confirm(head)
    await wipeConcurrent(db, projectId, outcome.erased)
  }
  return outcome
}

/**
 * Wipes again what concurrent transactions wrote: a charge or refund that was claimed while an import linked its customer
 * to one of these profiles has locked the former profile. It waits for each such customer while holding no other lock.
 */
async function wipeConcurrent(db: Db, projectId: string, ids: string[]): Promise<void> {
  const busy = await db.query<Linked>(FIND_BUSY, [projectId, ids])
  for (const { organization_id, external_id } of busy) await db.query(AWAIT_CUSTOMER, [organization_id, external_id])
  const profiles = [...new Set(busy.map(({ profile_id }) => profile_id))]
  if (profiles.length > 0) await wipeAgain(db, projectId, profiles)
}

type Linked = { organization_id: string; external_id: string; profile_id: string }

const FIND_BUSY = `
  with free as materialized (
    select organization_id, external_id from customers where project_id = $1 and profile_id = any($2)
    for update skip locked)
  select c.organization_id, c.external_id, c.profile_id from customers c
  where c.project_id = $1 and c.profile_id = any($2)
    and not exists (select from free f where f.organization_id = c.organization_id and f.external_id = c.external_id)`

const AWAIT_CUSTOMER = 'select from customers where organization_id = $1 and external_id = $2 for update'

/**
 * Repeats the erasures of a ledger, project by project, for profiles that exist here and are not erased. Returns how many
 * were erased now, were erased already, and are unknown here.
 */
export function reapply(db: Db, ledgerPath: string, entries: AsyncIterable<Erasure>) {
  const inTransaction: InTransaction = (work) =>
    db.tx(async (query) => {
      await endWhenStalled(query)
      return work(query)
    })
  return reapplyIn(inTransaction, ledgerPath, entries)
}

type InTransaction = <T>(work: (query: Query) => Promise<T>) => Promise<T>

/** The same in transactions of the caller's. */
export async function reapplyIn(inTransaction: InTransaction, ledgerPath: string, entries: AsyncIterable<Erasure>) {
  const result = { erased: 0, already_erased: 0, unknown: 0 }
  for await (const [projectId, batch] of batches(entries)) {
    const done = await inTransaction((query) => reapplyBatch(query, ledgerPath, projectId, batch))
    result.erased += done.erased
    result.already_erased += done.already_erased
    result.unknown += done.unknown
  }
  return result
}

async function reapplyBatch(query: Query, ledgerPath: string, projectId: string, batch: Erasure[]) {
  const known = await query('select 1 from projects where id = $1', [projectId])
  if (known.length === 0) return { erased: 0, already_erased: 0, unknown: batch.length }
  const found = await lockProfiles(
    query,
    projectId,
    batch.map(({ profile_id }) => profile_id),
  )
  const erased_at = await wipe(query, projectId, found)
  const named = new Set(batch.map(({ profile_id }) => profile_id))
  const others = [...found.keys()].filter((id) => !named.has(id))
  // Unknown profiles are entered too, so that an import that contains one finds it in the ledger.
  await enterInLedgers(query, ledgerPath, [
    ...batch,
    ...others.map((profile_id) => ({ project_id: projectId, profile_id, erased_at })),
  ])
  const erased = personal(found).length
  const unknown = batch.filter(({ profile_id }) => !found.has(profile_id)).length
  return { erased, already_erased: found.size - erased, unknown }
}

const BATCH = 1000

async function* batches(entries: AsyncIterable<Erasure>): AsyncIterable<[projectId: string, batch: Erasure[]]> {
  const waiting = new Map<string, Map<string, Erasure>>()
  for await (const entry of entries) {
    const batch = waiting.get(entry.project_id) ?? new Map<string, Erasure>()
    waiting.set(entry.project_id, batch.set(entry.profile_id, entry))
    if (batch.size < BATCH) continue
    waiting.delete(entry.project_id)
    yield [entry.project_id, [...batch.values()]]
  }
  for (const [projectId, batch] of waiting) yield [projectId, [...batch.values()]]
}

/**
 * Locks the rows, so that no transaction writes personal data of these profiles until the commit; returns which profiles
 * still have any. The person of a merged profile is the one that it was merged into: of each id, all ids of its person are
 * locked and returned. The strongest lock, because a charge that settles holds the weakest (a key share) while it writes an
 * event about a person.
 */
async function lockProfiles(
  query: Query,
  projectId: string,
  ids: string[],
): Promise<Map<string, 'personal' | 'erased'>> {
  const all = new Set<string>()
  const aliases = new Set<string>()
  // Again after each lock, because a merge may have been committed while it was waited for.
  for (let fresh = ids; fresh.length > 0; ) {
    for (const id of fresh) all.add(id)
    await query('select id from profiles where project_id = $1 and id = any($2) order by id for update', [
      projectId,
      fresh,
    ])
    const [targets, others] = [await targetsOf(query, projectId, [...all]), await aliasesOf(query, projectId, [...all])]
    for (const alias of [...targets.keys(), ...others]) aliases.add(alias)
    fresh = [...targets.values(), ...others].filter((id) => !all.has(id))
  }
  const rows = await query('select id, anonymized_at from profiles where project_id = $1 and id = any($2)', [
    projectId,
    [...all],
  ])
  const states = new Map(rows.map((row) => [row.id!, row.anonymized_at === null ? 'personal' : 'erased'] as const))
  const known = [...all].filter((id) => states.has(id) || aliases.has(id))
  return new Map(known.map((id) => [id, states.get(id) ?? 'erased']))
}

const personal = (found: Map<string, 'personal' | 'erased'>) =>
  [...found].filter(([, state]) => state === 'personal').map(([id]) => id)

/** Removes the personal data of these profiles, which are locked; returns the time of the erasure. */
async function wipe(query: Query, projectId: string, found: Map<string, 'personal' | 'erased'>): Promise<string> {
  const [begun] = await query<{ base: string }>('select begin_write($1) as base', [projectId])
  const { base } = begun!
  const fresh = personal(found)
  if (fresh.length > 0) await carryOut(query, ON_PERSONS, projectId, fresh, base)
  if (found.size > 0) {
    await wipeBelongings(query, projectId, [...found.keys()], base)
    if (fresh.length > 0) await writeEvents(query, projectId, fresh.map(anonymized))
    await mark(query, projectId)
  }
  return instantFromPg(base)
}

/**
 * Removes personal data from the records of these profiles, which are locked and erased; `base` is the least stamp, from
 * `begin_write`. Also for profiles erased long ago, which may have new records. Replicas learn of it by `mark`, which has
 * to follow.
 */
export async function wipeBelongings(query: Query, projectId: string, ids: string[], base: string): Promise<void> {
  await carryOut(query, ON_BELONGINGS, projectId, ids, base)
}

/** The same for an erased profile that a living one was merged into. */
export async function wipeMerged(query: Query, projectId: string, id: string, base: string): Promise<void> {
  await carryOut(query, [...ON_MERGED, ...ON_BELONGINGS], projectId, [id], base)
  await mark(query, projectId)
}

/** Wipes again what concurrent writers added before they saw the erasure. */
export async function wipeAgain(db: Db, projectId: string, ids: string[]): Promise<void> {
  await db.tx(async (query) => {
    const [, found] = await Promise.all([endWhenStalled(query), lockProfiles(query, projectId, ids)])
    return wipe(query, projectId, found)
  })
}

async function carryOut(query: Query, effects: string[], projectId: string, ids: string[], base: string) {
  for (const effect of effects) await query(effect, [projectId, ids, ...(effect.includes('$3') ? [base] : [])])
}

/**
 * Increments the project's number of erasures: a replica that does not have it yet is not read, and ledgers are compared
 * anew. Locks a row that every erasure of the project needs, so call it late in a transaction.
 */
export async function mark(query: Query, projectId: string): Promise<void> {
  await query(MARK, [projectId])
}

const MARK = `
  insert into erasure_marks as m (project_id, number) values ($1, 1)
  on conflict (project_id) do update set number = m.number + 1`

const anonymized = (id: string) =>
  ({ type: 'profile.anonymized', object_id: id, profile_id: id, data: { id } }) as const
