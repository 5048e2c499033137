// Describes the webhooks in the OpenAPI document: one schema for each kind of event.

import type { EventType } from '../../core/events/catalogue.ts'
import { profile } from '../../core/records/profile.ts'
import { sessionReplies } from '../../core/records/reply.ts'
import { session } from '../../core/records/session.ts'
import { subscriptionDetail } from '../../core/records/subscription.ts'
import { transaction } from '../../core/records/transaction.ts'
import { type Schema, Type } from '../../lib/shape/schema.ts'
import { chargeEventData } from '../../payments/billing/charge/response.ts'
import { creditsEventData, creditsLowData, topUpEventData } from '../../payments/billing/credits/events.ts'
import { consumable } from '../../payments/billing/ledger/consumable.ts'
import { disputeEventData } from '../../payments/billing/ledger/dispute.ts'
import { refundOut } from '../../payments/billing/refund/response.ts'

const idOf = (what: string, title: string) =>
  Type.Object(
    { id: Type.String({ description: `Identifier of the ${what}.` }) },
    { title, additionalProperties: false },
  )

const subscription = subscriptionDetail.schema

const commitsLost = Type.Named('CommitsLost', {
  id: Type.String({ description: 'The project.' }),
  lost_from: Type.String({
    format: 'date-time',
    description: 'What you stored with an `updated_at` at or after this instant may no longer exist.',
  }),
  noticed_at: Type.String({ format: 'date-time', description: 'When the loss was detected.' }),
  certain: Type.Boolean({ description: 'Whether commits are known to be lost, or only may be.' }),
})

const KINDS: Record<EventType, { when: string; data: Schema }> = {
  'subscription.created': { when: 'A subscription is new.', data: subscription },
  'subscription.trialing': { when: 'A trial began.', data: subscription },
  'subscription.active': { when: 'A subscription became active.', data: subscription },
  'subscription.renewed': { when: 'A new period began.', data: subscription },
  'subscription.paused': { when: 'A subscription was paused.', data: subscription },
  'subscription.cancelled': { when: 'A subscription was cancelled.', data: subscription },
  'subscription.unpaid': { when: 'A payment for a subscription failed.', data: subscription },
  'subscription.expired': { when: 'A subscription ended.', data: subscription },
  'transaction.created': { when: 'A transaction is new.', data: transaction.schema },
  'profile.created': { when: 'An import or a call of `POST /records` brought a new profile.', data: profile.schema },
  'profile.updated': { when: 'An import or a call of `POST /records` changed a profile.', data: profile.schema },
  'session.created': { when: 'An import or a call of `POST /records` brought a new session.', data: session.schema },
  'session.completed': {
    when: 'An import or a call of `POST /records` brought the first replies of a session.',
    data: sessionReplies.schema,
  },
  'profile.anonymized': { when: 'The personal data of a profile was erased.', data: idOf('profile', 'ErasedProfile') },
  'charge.succeeded': { when: 'A charge succeeded.', data: chargeEventData },
  'charge.failed': { when: 'A charge was declined.', data: chargeEventData },
  'charge.cancelled': { when: 'A charge ended without being made.', data: chargeEventData },
  'charge.disputed': { when: 'A customer disputed a charge at their bank.', data: disputeEventData },
  'charge.dispute_won': { when: 'A dispute of a charge was won.', data: disputeEventData },
  'refund.succeeded': { when: 'A refund succeeded.', data: refundOut },
  'refund.failed': { when: 'A refund failed, perhaps after it had succeeded.', data: refundOut },
  'consumable.granted': {
    when: 'A charge granted a consumable, or one that had been revoked is active again.',
    data: consumable.schema,
  },
  'consumable.revoked': { when: 'A full refund or a dispute revoked a consumable.', data: consumable.schema },
  'credits.granted': { when: 'Credits were added to a customer’s account.', data: creditsEventData },
  'credits.spent': { when: 'A customer’s credits were spent.', data: creditsEventData },
  'credits.expired': { when: 'Credits expired.', data: creditsEventData },
  'credits.revoked': {
    when: 'A refund, a dispute or an adjustment took credits from a customer’s account.',
    data: creditsEventData,
  },
  'credits.low': { when: 'What a customer can spend fell below the limit of the unit.', data: creditsLowData },
  'top_up.switched_off': {
    when: 'A decline, a refusal, a refund or a dispute switched an automatic top-up off.',
    data: topUpEventData,
  },
  'project.commits_lost': { when: 'A failover of the database lost commits, or may have.', data: commitsLost },
  'endpoint.test': { when: 'The operator tests an endpoint.', data: idOf('endpoint', 'TestedEndpoint') },
}

// As a sentence: generators that make code of webhooks cannot handle parameters there.
const HEADERS =
  'Headers: `webhook-id` (the event, the same at every attempt), `webhook-timestamp` (seconds since 1970 of this ' +
  'attempt), `webhook-signature` (`v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`, one or more).'

/** The `webhooks` of the document, by the kind of event. */
export function describeWebhooks(): Record<string, object> {
  return Object.fromEntries(Object.entries(KINDS).map(([type, kind]) => [type, { post: operation(type, kind) }]))
}

function operation(type: string, { when, data }: { when: string; data: Schema }): object {
  const name = type.replace(/(?:^|\.)([a-z])/g, (_all, letter: string) => letter.toUpperCase())
  return {
    operationId: `on${name}`,
    tags: ['Webhooks'],
    summary: type,
    description: `${when} Respond with any 2xx within 10 seconds; after any other response the delivery is tried again. ${HEADERS}`,
    security: [],
    requestBody: {
      required: true,
      content: { 'application/json': { schema: eventSchema(type, `${name}Event`, data) } },
    },
    responses: {
      '2XX': { description: 'The event has arrived.' },
      '4XX': { description: 'The delivery failed and is tried again; 410 disables the endpoint.' },
    },
  }
}

function eventSchema(type: string, title: string, data: Schema): Schema {
  return Type.Object(
    {
      id: Type.String({ format: 'uuid', description: 'Identifier of the event.' }),
      type: Type.Literal(type, { description: 'Kind of event.' }),
      created_at: Type.String({ format: 'date-time', description: 'When it was written.' }),
      project_id: Type.String({ description: 'The project.' }),
      sequence: Type.Integer({
        minimum: 1,
        description: 'Number of the event among those of the same object: 1, 2, 3, ….',
      }),
      data,
    },
    { title, additionalProperties: false },
  )
}
