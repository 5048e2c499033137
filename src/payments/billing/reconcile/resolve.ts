// Ends, by an operator's decision, a charge or refund whose outcome the provider will never know.
import { Refusal } from '../../../lib/errors.ts'
import type { Db } from '../../../lib/pg/db.ts'
import { noDetails } from '../../providers/provider.ts'
import { minorFromDatabase } from '../amount.ts'
import type { BillingContext } from '../context.ts'
import { KINDS } from '../kinds.ts'
import { checkStatus, orUnsettled } from '../movement/check-status.ts'
import type { InProgress } from '../movement/in-progress.ts'
import type { Kind, Verdict } from '../movement/kind-of-movement.ts'
import { leaseMs } from '../movement/lease.ts'

export type Resolution = 'succeeded' | 'failed' | 'cancelled'

/** An order or a refund. */
export interface Found {
  kind: Kind<InProgress>
  row: InProgress
}

/** The order or the refund of this id, of any organization. */
export async function findEither({ query }: Pick<Db, 'query'>, id: string): Promise<Found> {
  for (const kind of KINDS) {
    const row = await kind.rows.find(query, id)
    if (row) return { kind, row }
  }
  throw new Refusal(`There is no order and no refund ${id}.`)
}

/** The name of an order or a refund in sentences. */
export const nameOf = ({ kind, row }: Found) => `${kind.noun} ${kind.idOf(row)}`

/**
 * Settles an order or a refund in progress as the operator says, and keeps the reason. The provider is asked once more:
 * if it knows the outcome, that is written, and the operator's decision is refused.
 */
export async function resolve(context: BillingContext, found: Found, as: Resolution, because: string): Promise<Found> {
  const { db, log, providerTimeoutMs } = context
  const { kind, row } = found
  const name = nameOf(found)
  if (as === 'cancelled' && !kind.canBeCancelled)
    throw new Refusal(`A ${kind.noun} is never cancelled: it has succeeded or failed.`)
  if (row.status !== 'processing') throw new Refusal(`The ${name} is ${row.status} already.`)
  const taken = await kind.rows.take(db, row, leaseMs(providerTimeoutMs, 2))
  if (!taken) throw new Refusal(`The ${name} is being made or settled at this moment: try again in a minute.`)
  const checked = await orUnsettled(context, kind, taken, () => checkStatus(context, kind, taken))
  if (checked !== 'unsettled' && checked.status !== 'processing')
    throw new Refusal(`The provider knows the outcome: the ${name} is ${checked.status} now.`)
  const resolved = await kind.settle(context, undefined, taken, verdictOf({ kind, row: taken }, as), { because })
  if (!('status' in resolved)) throw new Error('Bug: an operator decided on another charge')
  log.warn({ ...kind.idsOf(taken), as }, 'An operator resolved a charge or a refund.')
  return { kind, row: resolved as InProgress }
}

function verdictOf({ kind, row }: Found, as: Resolution): Verdict {
  if (as === 'cancelled') return { outcome: 'refused' }
  const amountMinor = minorFromDatabase(row.amount, row.currency_code)
  // By the provider's id, refunds and disputes that are made there later are found.
  const details = { ...noDetails, psp_transaction_id: kind.handleOf(row) }
  return { outcome: as, reference: kind.idOf(row), amountMinor, currencyCode: row.currency_code, details }
}
