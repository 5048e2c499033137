// The transaction of an import: writes all staged rows into their tables.
import { mark } from '../../core/erasure/erasure.ts'
import type { Kind, Scope } from '../../core/records/record.ts'
import type { Query } from '../../lib/pg/types.ts'
import { type Linked, wipeErased, wipeStored } from './erased.ts'
import { createNotes, emitNoted, eventHooks } from './events.ts'
import { figureHooks } from './figure-marks.ts'
import { together } from './hooks.ts'
import { merge, type Tally } from './merge.ts'
import { mergePayments } from './payments.ts'
import { beginStamps, stampDependents, stampHooks } from './stamping.ts'

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

export interface Applied extends Tally {
  /** Customers to wipe again after the commit. */
  linked: Linked[]
}

/** Writes all staged rows. `kinds` come in the order of their references. */
export async function apply(query: Query, kinds: readonly Kind[], scope: Scope, writing: Writing): Promise<Applied> {
  const { projectId, base, emitEvents, done } = writing
  const { isAnyErased, linked } = await wipeErased(query, kinds, scope)
  await beginStamps(query)
  if (emitEvents) await createNotes(query)
  const total = { skipped: 0, erased: 0, unchanged: 0 }
  async function write(kind: Kind): Promise<void> {
    const figures = figureHooks(query, kind, scope)
    const hooks = together(stampHooks(query, kind, scope), emitEvents ? eventHooks(query, kind, scope) : {}, figures)
    const merging = isPayment(kind) ? mergePayments(query, kind, scope, figures) : merge(query, kind, scope, hooks)
    const { skipped, erased, unchanged } = await merging
    total.skipped += skipped
    total.erased += erased
    total.unchanged += unchanged
    done(kind)
  }
  for (const kind of kinds.filter((kind) => !isPayment(kind))) await write(kind)
  await stampDependents(query, scope)
  if (emitEvents) await emitNoted(query, projectId)
  const wipes = isAnyErased && kinds.some(isOwned)
  if (wipes) await wipeStored(query, projectId, base)
  // Payments last: those of a feed lock the organization's clock, for which its charges then wait.
  for (const kind of kinds.filter(isPayment)) await write(kind)
  // The very last, because erasures of the project wait for this row.
  if (wipes) await mark(query, projectId)
  return { ...total, linked }
}

const isPayment = ({ name }: Kind) => name === 'payment'
// Records that a line can move to another profile, with all that belongs to them.
const isOwned = ({ name }: Kind) => name === 'session' || name === 'customer'
