// The kinds of events a project can hear of; each name is the `type` of the event and of its webhook.

export const eventTypes = [
  'subscription.created',
  'subscription.trialing',
  'subscription.active',
  'subscription.renewed',
  'subscription.paused',
  'subscription.cancelled',
  'subscription.unpaid',
  'subscription.expired',
  'transaction.created',
  'profile.created',
  'profile.updated',
  'session.created',
  'session.completed',
  'profile.anonymized',
  'charge.succeeded',
  'charge.failed',
  'charge.cancelled',
  'charge.disputed',
  'charge.dispute_won',
  'refund.succeeded',
  'refund.failed',
  'consumable.granted',
  'consumable.revoked',
  'project.commits_lost',
  'endpoint.test',
] as const

export type EventType = (typeof eventTypes)[number]
