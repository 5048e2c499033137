// Tells of what an import changes, if it was asked to: events of subscriptions and transactions, in its own transaction.
import { emitSubscriptionEvents, emitTransactionEvents, type SubscriptionChange } from '../events/changes.ts'
import type { Query } from '../lib/pg/types.ts'
import type { Kind, Scope } from '../records/record.ts'
import { type MergeHooks, sameKey } from './merge.ts'
import { staged } from './staging.ts'

const NOTED = 'import_noted'
// So many changes are in memory at once.
const BATCH = 5000

/** Makes the notes of what changes; they end with the transaction. */
export async function beginNotes(query: Query): Promise<void> {
  await query(`
    create temp table ${NOTED} (
      place bigint generated always as identity, kind text, id text, known boolean,
      status text, renewed_at timestamptz, period_starts_at timestamptz) on commit drop`)
}

/** What to do while rows of this kind are merged, so that there is something to tell. */
export function notes(query: Query, kind: Kind, scope: Scope): MergeHooks {
  if (kind.name === 'subscription') {
    return {
      beforeUpdate: () => query(noteKnown(kind, scope)),
      beforeAdd: () => query(noteNew(kind)),
    }
  }
  return kind.name === 'transaction' ? { beforeAdd: () => query(noteNew(kind)) } : {}
}

/** Writes the events of everything that was noted, when all of it is in its tables. */
export async function tell(query: Query, projectId: string): Promise<void> {
  for (let place = '0'; ; ) {
    const rows = await query<Noted>(NEXT, [place, BATCH])
    if (rows.length === 0) return
    const ofKind = (kind: string) => rows.filter((row) => row.kind === kind)
    await emitSubscriptionEvents(query, projectId, ofKind('subscription').map(changeOf))
    await emitTransactionEvents(
      query,
      projectId,
      ofKind('transaction').map(({ id }) => id),
    )
    place = rows.at(-1)!.place
  }
}

type Noted = {
  place: string
  kind: string
  id: string
  known: 't' | 'f'
  status: string
  renewed_at: string | null
  period_starts_at: string | null
}

const NEXT = `select * from ${NOTED} where place > $1 order by place limit $2`

function changeOf({ id, known, status, renewed_at, period_starts_at }: Noted): SubscriptionChange {
  return { id, before: known === 't' ? { status, renewed_at, period_starts_at } : null }
}

function noteKnown(kind: Kind, scope: Scope): string {
  return `
    insert into ${NOTED} (kind, id, known, status, renewed_at, period_starts_at)
    select '${kind.name}', t.id, true, t.status, t.renewed_at, t.period_starts_at
    from ${kind.table} t join ${staged(kind)} s on ${sameKey(kind, scope)} order by s.source, s.line`
}

function noteNew(kind: Kind): string {
  return `
    insert into ${NOTED} (kind, id, known) select '${kind.name}', id, false from ${staged(kind)} order by source, line`
}
