// The parts of an account of credits: grants, holds and entries.
import { instantFromMicros, microsFromInstant } from '../../../lib/time.ts'
import type { Credits } from './amount.ts'

/** The account of the organization that a movement is booked against. */
export type CounterAccount = 'granted' | 'spent' | 'expired' | 'revoked' | 'adjusted'

/** What an entry came from. */
export type Cause =
  | 'charge'
  | 'grant'
  | 'spend'
  | 'capture'
  | 'adjustment'
  | 'expiry'
  | 'refund'
  | 'refund_failed'
  | 'dispute'
  | 'dispute_won'

/** A grant and what is left of it. */
export interface Lot {
  grantId: string
  amount: Credits
  remaining: Credits
  expired: Credits
  revoked: Credits
  /** In the canonical form, so that texts compare like times; null: never. */
  expiresAt: string | null
  orderId: string | null
  change: 'none' | 'changed' | 'new'
}

export interface Hold {
  holdId: string
  amount: Credits
  captured: Credits | null
  status: 'open' | 'captured' | 'released' | 'expired'
  expiresAt: string
  change: 'none' | 'changed' | 'new'
}

/** The rule of an automatic top-up that is on. */
export interface TopUp {
  topUpId: string
  /** The card is charged when what is available falls below it. */
  below: Credits
  /** Whether a check of the balance is due or under way already. */
  isDue: boolean
}

export interface Entry {
  entryId: string
  account: CounterAccount
  /** The change of the customer's balance; the counter account changes by the opposite. */
  amount: Credits
  balance: Credits
  cause: Cause
  grantId: string | null
  holdId: string | null
  orderId: string | null
  key: string | null
  reason: string | null
  metadata: string | null
}

/** What a caller adds to an entry. */
export type About = Partial<Pick<Entry, 'key' | 'reason' | 'metadata' | 'holdId' | 'orderId'>>

/** Whether an instant has come; null never does. */
export const isDue = (at: string | null, now: string) => at !== null && at <= now

/** The earlier of two instants, of which null is the latest. */
export const earlier = (one: string | null, other: string | null) =>
  one === null || (other !== null && other < one) ? other : one

/** Orders grants: first what expires first; ids sort by the time they were made. */
export function byExpiry(one: Lot, other: Lot): number {
  if (one.expiresAt !== other.expiresAt) {
    if (one.expiresAt === null) return 1
    if (other.expiresAt === null) return -1
    return one.expiresAt < other.expiresAt ? -1 : 1
  }
  return one.grantId < other.grantId ? -1 : one.grantId > other.grantId ? 1 : 0
}

/**
 * When a revoked grant expires that comes back: it lasts as long as it had left when it was taken, because it could not be used since. One
 * that had expired by then was revoked only as far as it was spent, which other grants have paid: it does not expire.
 */
export function expiryOfReturned(expiresAt: string | null, takenAt: string | null, now: string): string | null {
  if (expiresAt === null || takenAt === null) return expiresAt
  const leftMicros = microsFromInstant(expiresAt) - microsFromInstant(takenAt)
  return leftMicros > 0n ? instantFromMicros(microsFromInstant(now) + leftMicros) : null
}
