// The kinds of events. Each declares whose personal data it contains, by which an erasure finds its events.

/**
 * Whose personal data the `data` of a kind may contain:
 * - `no person`: none; the event has no `profile_id`.
 * - `profile`: only that of the event's `profile_id`.
 * - `session in data`: also that of the person of `data.session`, which may have another profile.
 * - `session`: also that of the session that the event is about, which may have been moved to another profile since.
 * - `order`: also that of the customer of the order that the event is about, who may be linked to a profile only later.
 *
 * `src/core/erasure/effects.ts` has a statement for each of them.
 */
export type Holds = 'no person' | 'profile' | 'session in data' | 'session' | 'order'

/** By their names, which are the `type` of the event and of its webhook. */
const KINDS = {
  'subscription.created': 'session in data',
  'subscription.trialing': 'session in data',
  'subscription.active': 'session in data',
  'subscription.renewed': 'session in data',
  'subscription.paused': 'session in data',
  'subscription.cancelled': 'session in data',
  'subscription.unpaid': 'session in data',
  'subscription.expired': 'session in data',
  'transaction.created': 'profile',
  'profile.created': 'profile',
  'profile.updated': 'profile',
  'session.created': 'session',
  'session.completed': 'session',
  'profile.anonymized': 'profile',
  'charge.succeeded': 'order',
  'charge.failed': 'order',
  'charge.cancelled': 'order',
  'charge.disputed': 'order',
  'charge.dispute_won': 'order',
  'refund.succeeded': 'profile',
  'refund.failed': 'profile',
  'consumable.granted': 'profile',
  'consumable.revoked': 'profile',
  'credits.granted': 'profile',
  'credits.spent': 'profile',
  'credits.expired': 'profile',
  'credits.revoked': 'profile',
  'credits.low': 'profile',
  'top_up.switched_off': 'profile',
  'project.commits_lost': 'no person',
  'endpoint.test': 'no person',
} as const satisfies Record<string, Holds>

export type EventType = keyof typeof KINDS

/** The kinds whose events are about no person, and those about one. */
export type ImpersonalType = { [T in EventType]: (typeof KINDS)[T] extends 'no person' ? T : never }[EventType]
export type PersonalType = Exclude<EventType, ImpersonalType>

export const eventTypes = Object.keys(KINDS) as readonly EventType[]

/** The kinds that hold the personal data of these. */
export function typesThatHold(holds: Holds): EventType[] {
  return eventTypes.filter((type) => KINDS[type] === holds)
}
