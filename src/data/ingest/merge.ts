// Writes the staged rows of a kind into its table, as if each line had been imported alone, and updates the counters.

import type { Kind, Scope } from '../../core/records/record.ts'
import type { Query } from '../../lib/pg/types.ts'
import {
  contentOf,
  isChanged,
  isDated,
  isRedated,
  isSkipped,
  isUnchanged,
  SOURCE,
  sameKey,
  UPDATED_AT,
} from './conditions.ts'
import { completeFromStored } from './merged-lines.ts'
import { completeRepeated, dropRepeated, findRepeated } from './repeated.ts'
import { columnsOf } from './row.ts'
import { type StagedKind, staged } from './staging.ts'
import type { Tally } from './tally.ts'

/** Statements that have to read the rows before they change. */
export interface MergeHooks {
  /** Run when the rows that will replace stored ones are staged together with the new ones, if there are any. */
  beforeUpdate?: string[]
  /** Run when only new rows are staged. */
  beforeAdd?: string[]
}

/** What a merge needs besides the rows. */
export interface Merging {
  scope: Scope
  tally: Tally
  /** Whether staged rows may be about erased people. */
  isAnyErased: boolean
}

/** What the keys of staged rows decide. */
export interface Keys {
  /** Whether some of them are stored. */
  isKnown: boolean
  /** Whether some come more than once. */
  isRepeated: boolean
}

/** Locks the stored rows before they are read: decisions and counts made from here on stay true. */
export async function lockKeys(query: Query, { kind, rows }: StagedKind, scope: Scope): Promise<Keys> {
  const [[locked], found] = await Promise.all([
    query(lockKnown(kind, scope)),
    rows > 1 ? query(findRepeated(kind)) : [],
  ])
  return { isKnown: locked!.known !== '0', isRepeated: found[0]?.repeated === 't' }
}

/**
 * Merges all staged rows of a kind; its statements are sent before it returns. Relies on being the only import of its organization:
 * no other process adds rows that a line may name, so that a new row stays new, and a counter cannot count it twice.
 */
export async function merge(
  query: Query,
  brought: StagedKind,
  keys: Keys,
  merging: Merging,
  hooks: MergeHooks,
): Promise<void> {
  // Sent together: the connection runs them in this order.
  await Promise.all([
    ...mergeKnown(query, brought, keys, merging, hooks),
    ...addRest(query, brought.kind, merging.scope, hooks),
  ])
}

/** The first half, which is sent and not awaited. Afterwards only rows with new keys are staged, each key once. */
export function mergeKnown(
  query: Query,
  { kind, merged }: StagedKind,
  { isKnown, isRepeated }: Keys,
  { scope, tally, isAnyErased }: Merging,
  { beforeUpdate = [] }: MergeHooks,
): Promise<unknown>[] {
  const moved = kind.counts && countMoved(kind, kind.counts, scope)
  return [
    ...(isKnown && merged ? [query(completeFromStored(kind, scope))] : []),
    ...(isRepeated && merged ? [query(completeRepeated(kind, scope))] : []),
    ...(isRepeated ? [tally.add(query, dropRepeated(kind, scope))] : []),
    ...(isKnown ? [tally.add(query, dropOlder(kind, scope))] : []),
    ...(isAnyErased ? [tally.add(query, countErased(kind))] : []),
    ...(isKnown && kind.name === 'subscription' ? [query(keepExpired(kind, scope))] : []),
    ...(isKnown ? [tally.add(query, countUnchanged(kind, scope))] : []),
    ...(isKnown
      ? [...beforeUpdate, ...(moved ? [moved] : []), updateKnown(kind, scope), dropKnown(kind, scope)]
      : []
    ).map((statement) => query(statement)),
  ]
}

/** The second half: inserts the rows that are still staged. */
export function addRest(query: Query, kind: Kind, scope: Scope, { beforeAdd = [] }: MergeHooks): Promise<unknown>[] {
  const counted = kind.counts ? [countAdded(kind, kind.counts, scope)] : []
  return [...beforeAdd, ...counted, insert(kind, scope)].map((statement) => query(statement))
}

function lockKnown(kind: Kind, scope: Scope): string {
  return `
    with locked as materialized (
      select from ${kind.table} t join ${staged(kind)} s on ${sameKey(kind, scope)}
      order by ${kind.key.map((column) => `t.${column}`).join(', ')} for no key update of t)
    select count(*) as known from locked`
}

function dropOlder(kind: Kind, scope: Scope): string {
  return `
    with gone as (
      delete from ${staged(kind)} s using ${kind.table} t
      where ${sameKey(kind, scope)} and (${isSkipped(kind)}) returning s.source)
    select 'skipped' as counted, source, count(*) as n from gone group by source`
}

function countErased(kind: Kind): string {
  return `select 'erased' as counted, source, count(*) as n from ${staged(kind)} where erased group by source`
}

function countUnchanged(kind: Kind, scope: Scope): string {
  return `
    select 'unchanged' as counted, s.source, count(*) as n from ${staged(kind)} s join ${kind.table} t on ${sameKey(kind, scope)}
    where s.erased is not true and ${isUnchanged(kind, scope)} group by s.source`
}

/** A line that repeats a cancelled subscription does not take back that it has expired, which would send its event again. */
function keepExpired(kind: Kind, scope: Scope): string {
  return `
    update ${staged(kind)} s set status = 'expired' from ${kind.table} t
    where ${sameKey(kind, scope)} and t.status = 'expired' and s.status = 'cancelled'
      and s.period_ends_at = t.period_ends_at and s.period_ends_at <= db_clock()`
}

type Counts = NonNullable<Kind['counts']>

/** The changes of counters by the updates that follow; undefined if an update cannot change any. */
function countMoved(kind: Kind, counts: Counts, scope: Scope): string | undefined {
  const moving = Object.entries(counts).filter(([, value]) => value('t') !== value('s'))
  if (moving.length === 0) return undefined
  const values = (row: string) => moving.map(([, value]) => value(row)).join(', ')
  const moves = moving.flatMap(([field, value]) => [
    `('${field}', ${value('t')}, -1)`,
    `('${field}', ${value('s')}, 1)`,
  ])
  return `
    insert into counts (project_id, list, field, value, n)
    select ${scope.project_id}, '${kind.table}', field, value, sum(n)
    from ${staged(kind)} s join ${kind.table} t on ${sameKey(kind, scope)}
    cross join lateral (values ${moves.join(', ')}) move (field, value, n)
    where row(${values('t')}) is distinct from row(${values('s')}) and value is not null
    group by field, value having sum(n) <> 0`
}

/**
 * Updates the stored rows. A row whose content stays the same keeps its stamp, because a sync must not see it as a change; it
 * only stores the time of its line.
 */
function updateKnown(kind: Kind, scope: Scope): string {
  const { live, stamp } = scope
  const changed = isChanged(kind)
  const stamped = `greatest(${stamp}, t.updated_at + interval '1 microsecond')`
  const set = contentOf(kind).map(({ name }) => `${name} = s.${name}`)
  if (isDated(kind)) {
    const now = `case when ${changed} then ${stamped} else t.updated_at end`
    set.push(`updated_at = ${live ? now : history(kind, scope, now)}`, `${SOURCE} = s.updated_at`)
  } else if (kind.added) set.push(`updated_at = ${stamped}`)
  return `
    update ${kind.table} t set ${set.join(', ')} from ${staged(kind)} s
    where ${sameKey(kind, scope)} and (${changed}${isRedated(kind)})`
}

/**
 * The stamp of history: the time of the line. But every sync must see an erasure: a stamp that it has set is not set back,
 * and a wiped line is stamped now. Subscriptions only show the removed data: their profile's e-mail, and their session's
 * user agent.
 */
function history(kind: Kind, { project_id }: Scope, now: string): string {
  const given = `coalesce(s.updated_at, ${now})`
  if (kind.name !== 'subscription') return `case when s.erased then greatest(${given}, ${now}) else ${given} end`
  const ofErased = `exists (select from profiles p where p.project_id = ${project_id} and p.anonymized_at is not null
    and p.id = any(array[t.profile_id,
      (select profile_id from sessions o where o.project_id = ${project_id} and o.id = t.session_id)]))`
  return `case when ${ofErased} then greatest(${given}, t.updated_at) else ${given} end`
}

function dropKnown(kind: Kind, scope: Scope): string {
  return `delete from ${staged(kind)} s using ${kind.table} t where ${sameKey(kind, scope)}`
}

function countAdded(kind: Kind, counts: Counts, scope: Scope): string {
  const each = Object.entries(counts).map(
    ([field, value]) =>
      `select '${field}' as field, ${value('s')} as value, count(*) as n from ${staged(kind)} s group by 2`,
  )
  return `
    insert into counts (project_id, list, field, value, n)
    select ${scope.project_id}, '${kind.table}', field, value, n from (${each.join(' union all ')}) added
    where value is not null`
}

/** SQL: inserts the staged rows of a kind into its table, or into another one like it. */
export function insert(kind: Kind, scope: Scope, table = kind.table): string {
  const { live, stamp } = scope
  const updated = live ? stamp : `coalesce(updated_at, ${stamp})`
  const columns = Object.entries({
    [kind.tenant]: scope[kind.tenant],
    ...kind.added?.(scope),
    ...Object.fromEntries(columnsOf(kind).map(({ name }) => [name, name === UPDATED_AT ? updated : name])),
    ...(isDated(kind) && { [SOURCE]: UPDATED_AT }),
  })
  return `
    insert into ${table} (${columns.map(([name]) => name).join(', ')})
    select ${columns.map(([, sql]) => sql).join(', ')} from ${staged(kind)}`
}
