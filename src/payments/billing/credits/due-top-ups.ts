// What a change of an account does to its automatic top-up: one that falls below the limit is due, and one that was revoked is switched off.
import { onGivenRows } from '../../../lib/pg/given-rows.ts'
import type { Query } from '../../../lib/pg/types.ts'
import { type Held, IS_SAME, KEY, rowOf } from './store.ts'

/** The reason of a top-up that a refund or dispute switched off. */
export const REVOKED = 'revoked'

/** A refund or a dispute took credits: charging the card again for them is not what the customer wants. */
export const isSwitchedOff = ({ topUp, account }: Held): boolean =>
  topUp !== null && account.entries.some((entry) => entry.account === 'revoked' && entry.amount < 0n)

const isNowDue = ({ topUp, account }: Held): boolean =>
  topUp !== null && !topUp.isDue && account.available < topUp.below

/** Notes it in the rules of these accounts, which are locked. */
export async function noteTopUps(query: Query, changed: readonly Held[]): Promise<void> {
  const off = changed.filter(isSwitchedOff)
  const due = changed.filter((held) => !isSwitchedOff(held) && isNowDue(held))
  await Promise.all([
    ...(off.length > 0 ? [query(...SWITCH_OFF(off.map(rowOf), REVOKED))] : []),
    ...(due.length > 0 ? [query(...MAKE_DUE(due.map(rowOf)))] : []),
  ])
}

const SWITCH_OFF = onGivenRows(
  'switch top-ups off',
  KEY,
  (rows) => `
    update credit_top_ups t set status = 'off', off_reason = $1, due_at = null, updated_at = db_clock()
    from ${rows} where ${IS_SAME('t')} and t.status = 'on'`,
  1,
)

const MAKE_DUE = onGivenRows(
  'make top-ups due',
  KEY,
  (rows) =>
    `update credit_top_ups t set due_at = db_clock() from ${rows} where ${IS_SAME('t')} and t.status = 'on' and t.due_at is null`,
)
