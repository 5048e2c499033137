// What happens inside the transaction of an import: everything staged goes into its tables.
import { mark } from '../erasure.ts'
import type { Query } from '../lib/db.ts'
import { wipeErased, wipeStored } from './erased.ts'
import type { Kind, Scope } from './kind.ts'
import { type MergeHooks, merge, sameKey, type Tally } from './merge.ts'
import { mergePayments } from './payments.ts'
import { staged } from './staging.ts'
import { beginNotes, notes, tell } from './telling.ts'

/** What an import is, beside its scope. */
export interface Writing {
  projectId: string
  /** The instant that rows are stamped with, as the database gave it. */
  base: string
  /** Whether events are written of what changes. */
  emitEvents: boolean
  /** Hears of each kind that is written. */
  done: (kind: Kind) => void
}

/** Writes all staged rows. `kinds` come in the order of their references. */
export async function apply(query: Query, kinds: readonly Kind[], scope: Scope, writing: Writing): Promise<Tally> {
  const { projectId, base, emitEvents, done } = writing
  const anybodyErased = await wipeErased(query, kinds, scope)
  await query(`create temp table ${RENAMED} (id text collate "C") on commit drop`)
  if (emitEvents) await beginNotes(query)
  const total = { skipped: 0, erased: 0 }
  async function write(kind: Kind): Promise<void> {
    const hooks = emitEvents ? notes(query, kind, scope) : {}
    const { skipped, erased } = await mergeOne(query, kind, scope, hooks)
    total.skipped += skipped
    total.erased += erased
    done(kind)
  }
  for (const kind of kinds.filter((kind) => !isPayment(kind))) await write(kind)
  // When all subscriptions are there, and stamped by what they bring themselves.
  await query(stampSubscriptions(scope))
  if (emitEvents) await tell(query, projectId)
  const wipes = anybodyErased && kinds.some(isOwned)
  if (wipes) await wipeStored(query, projectId, base)
  // Payments last: from there on charges of the organization wait.
  for (const kind of kinds.filter(isPayment)) await write(kind)
  // And behind them what erasures of the project wait for.
  if (wipes) await mark(query, projectId)
  return total
}

const RENAMED = 'import_renamed'
const isPayment = ({ name }: Kind) => name === 'payment'
// What a line may bring under another profile, with all that hangs on it.
const isOwned = ({ name }: Kind) => name === 'session' || name === 'customer'

function mergeOne(query: Query, kind: Kind, scope: Scope, hooks: MergeHooks): Promise<Tally> {
  if (isPayment(kind)) return mergePayments(query, kind, scope)
  if (kind.name !== 'profile') return merge(query, kind, scope, hooks)
  return merge(query, kind, scope, { beforeUpdate: () => query(noteRenamed(kind, scope)) })
}

/** Profiles whose e-mail or preview mark, which their subscriptions show, is going to change. */
function noteRenamed(kind: Kind, scope: Scope): string {
  return `
    insert into ${RENAMED} (id)
    select t.id from profiles t join ${staged(kind)} s on ${sameKey(kind, scope)}
    where (t.email, t.preview) is distinct from (s.email, s.preview)`
}

function stampSubscriptions({ project_id, stamp }: Scope): string {
  return `
    update subscriptions t set updated_at = greatest(${stamp}, t.updated_at + interval '1 microsecond')
    from ${RENAMED} r where t.project_id = ${project_id} and t.profile_id = r.id`
}
