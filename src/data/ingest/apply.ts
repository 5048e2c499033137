// The transaction of an import: writes all staged rows into their tables.
import { mark } from '../../core/erasure/erasure.ts'
import type { Pair } from '../../core/people/merge.ts'
import type { Kind, Scope } from '../../core/records/record.ts'
import type { Query } from '../../lib/pg/types.ts'
import { dropAliases } from './aliases.ts'
import { type Linked, wipeErased, wipeStored } from './erased.ts'
import { emitNoted, eventHooks, NO_CHANGES, readNoted } from './events.ts'
import { figureHooks } from './figure-marks.ts'
import { type Keys, lockKeys, type MergeHooks, merge } from './merge.ts'
import { mergePayments } from './payments.ts'
import type { StagedKind } from './staging.ts'
import { stampDependents, stampHooks } from './stamping.ts'
import { gatherInTransaction } from './statistics.ts'
import { Tally } from './tally.ts'
import { isAnyLinkWaiting, linkBrought } from './waiting.ts'

/** The parameters of an import besides its scope. */
export interface Writing {
  projectId: string
  /** The instant that rows are stamped with, as the database gave it. */
  base: string
  /** Whether changes are written as events. */
  emitEvents: boolean
  /** Called for each kind that is written. */
  done: (kind: Kind) => void
}

export interface Applied {
  tally: Tally
  /** Customers to wipe again after the commit. */
  linked: Linked[]
  /** Profiles that were merged: what others wrote for them moves after the commit. */
  merged: Pair[]
  /** The last statements, which are sent: a commit that is sent at once needs no separate round trip. */
  last: Promise<unknown>[]
}

/** What decides how the rows are written. */
export interface Examined {
  tally: Tally
  isAnyErased: boolean
  linked: Linked[]
  /** Of few rows: their keys by kind. */
  keys: Map<Kind, Keys>
}

/**
 * Finds what decides how the staged rows are written, and locks their people; of few rows also the stored ones, with statements that
 * are sent before it returns. `brought` come in the order of their references.
 */
export async function examine(query: Query, brought: readonly StagedKind[], scope: Scope): Promise<Examined> {
  const kinds = brought.map(({ kind }) => kind)
  const tally = new Tally()
  const few = isLarge(brought) ? [] : brought.filter(({ kind }) => !isPayment(kind))
  const [, erased, keys] = await Promise.all([
    dropAliases(query, kinds, scope, tally),
    wipeErased(query, kinds, scope, isLarge(brought)),
    Promise.all(few.map(async (one) => [one.kind, await lockKeys(query, one, scope)] as const)),
  ])
  return { tally, ...erased, keys: new Map(keys) }
}

/** Writes all staged rows. */
export async function apply(
  query: Query,
  brought: readonly StagedKind[],
  scope: Scope,
  writing: Writing,
  examined: Examined,
): Promise<Applied> {
  const { projectId, base, emitEvents, done } = writing
  const { tally, isAnyErased, linked, keys } = examined
  const kinds = brought.map(({ kind }) => kind)
  const merging = { scope, tally, isAnyErased }
  async function write(one: StagedKind): Promise<void> {
    const { kind } = one
    const figures = figureHooks(kind, scope)
    const hooks = joinHooks(stampHooks(kind, scope), emitEvents ? eventHooks(kind, scope) : {}, figures)
    await (isPayment(kind)
      ? mergePayments(query, one, merging, figures)
      : merge(query, one, keys.get(kind) ?? (await lockKeys(query, one, scope)), merging, hooks))
    if (one.rows > SMALL && !isPayment(kind)) await gatherInTransaction(query, kind.table, one.rows)
    done(kind)
  }
  const payments = brought.filter(({ kind }) => isPayment(kind))
  const writes: Promise<void>[] = []
  for (const one of brought) {
    if (isPayment(one.kind)) continue
    const written = write(one)
    writes.push(written)
    if (!keys.has(one.kind)) await written
  }
  // Sent together, and if the keys are known, with the writes.
  const [isAwaited, , found] = await Promise.all([
    isAnyLinkWaiting(query, scope),
    stampDependents(query, kinds, scope),
    emitEvents ? readNoted(query, projectId, kinds) : NO_CHANGES,
    ...writes,
  ])
  const merged = isAwaited ? await linkBrought(query, kinds, scope, writing) : []
  // The links stamp what they change.
  const noted = isAwaited && emitEvents ? await readNoted(query, projectId, kinds) : found
  const last = await emitNoted(query, projectId, noted)
  const wipes = isAnyErased && kinds.some(isOwned)
  if (!wipes && payments.length === 0) return { tally, linked, merged, last }
  await Promise.all(last)
  if (wipes) await wipeStored(query, projectId, base)
  // Payments last: those of a feed lock the organization's clock, for which its charges then wait.
  for (const one of payments) await write(one)
  // The very last, because erasures of the project wait for this row.
  if (wipes) await mark(query, projectId)
  return { tally, linked, merged, last: [] }
}

const joinHooks = (...all: MergeHooks[]): MergeHooks => ({
  beforeUpdate: all.flatMap(({ beforeUpdate = [] }) => beforeUpdate),
  beforeAdd: all.flatMap(({ beforeAdd = [] }) => beforeAdd),
})

const isLarge = (brought: readonly StagedKind[]) => brought.some(({ rows }) => rows > SMALL)

// Up to this many rows a plan without statistics is good enough.
const SMALL = 1000

const isPayment = ({ name }: Kind) => name === 'payment'
// Records that a line can move to another profile, with all that belongs to them.
const isOwned = ({ name }: Kind) => name === 'session' || name === 'customer'
