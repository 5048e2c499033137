// The transaction of an import: writes all staged rows into their tables.
import { mark } from '../../core/erasure/erasure.ts'
import type { Pair } from '../../core/people/merge.ts'
import type { Kind, Scope } from '../../core/records/record.ts'
import type { Query } from '../../lib/pg/types.ts'
import { dropAliases } from './aliases.ts'
import { type Linked, wipeErased, wipeStored } from './erased.ts'
import { emitNoted, eventHooks, readNoted } from './events.ts'
import { figureHooks } from './figure-marks.ts'
import { together } from './hooks.ts'
import { merge } from './merge.ts'
import { mergePayments } from './payments.ts'
import type { StagedKind } from './staging.ts'
import { stampDependents, stampHooks } from './stamping.ts'
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
}

/** Writes all staged rows. `brought` come in the order of their references. */
export async function apply(
  query: Query,
  brought: readonly StagedKind[],
  scope: Scope,
  writing: Writing,
): Promise<Applied> {
  const { projectId, base, emitEvents, done } = writing
  const kinds = brought.map(({ kind }) => kind)
  const isLarge = brought.some(({ rows }) => rows > SMALL)
  const tally = new Tally()
  await dropAliases(query, kinds, scope, tally)
  const { isAnyErased, linked } = await wipeErased(query, kinds, scope, isLarge)
  const merging = { scope, tally, isAnyErased }
  async function write(one: StagedKind): Promise<void> {
    const { kind } = one
    const figures = figureHooks(kind, scope)
    const hooks = together(stampHooks(kind, scope), emitEvents ? eventHooks(kind, scope) : {}, figures)
    await (isPayment(kind) ? mergePayments(query, one, merging, figures) : merge(query, one, merging, hooks))
    done(kind)
  }
  for (const one of brought) if (!isPayment(one.kind)) await write(one)
  // Sent together. The links stamp what they change, and read the first events only as they are after the links.
  const [isAwaited, , noted] = await Promise.all([
    isAnyLinkWaiting(query, scope),
    stampDependents(query, kinds, scope),
    emitEvents ? readNoted(query) : [],
  ])
  const merged = isAwaited ? await linkBrought(query, kinds, scope, writing) : []
  if (emitEvents) await emitNoted(query, projectId, noted)
  const wipes = isAnyErased && kinds.some(isOwned)
  if (wipes) await wipeStored(query, projectId, base)
  // Payments last: those of a feed lock the organization's clock, for which its charges then wait.
  for (const one of brought) if (isPayment(one.kind)) await write(one)
  // The very last, because erasures of the project wait for this row.
  if (wipes) await mark(query, projectId)
  return { tally, linked, merged }
}

// Up to this many rows a plan without statistics is good enough.
const SMALL = 1000

const isPayment = ({ name }: Kind) => name === 'payment'
// Records that a line can move to another profile, with all that belongs to them.
const isOwned = ({ name }: Kind) => name === 'session' || name === 'customer'
