// Subscriptions: the list with its filters, and one subscription with its details.
import type { FastifyInstance } from 'fastify'
import { equals, listOf } from '../../core/lists/list.ts'
import {
  DETAIL_JOINS,
  JOINS,
  STATUSES,
  subscription,
  subscriptionDetail,
  subscriptionRecord,
} from '../../core/records/subscription.ts'
import { Type } from '../../lib/shape/schema.ts'
import { foldQueriedEmail } from '../../lib/text.ts'
import type { PublicContext } from './context.ts'
import { detailRoute, listRoute } from './resource.ts'

const list = listOf(subscriptionRecord, {
  shape: subscription,
  alias: 's',
  joins: JOINS,
  maxLimit: 500,
  filters: {
    profile_id: equals('s.profile_id', 'Only subscriptions of this profile.', { selective: true }),
    psp: equals('s.payment_provider', 'Only subscriptions with this `payment_provider`.', {
      counter: 'payment_provider',
    }),
    funnel_id: equals('s.funnel_id', 'Only subscriptions sold through this funnel.', { counter: 'funnel_id' }),
    product_id: equals('s.product_id', 'Only subscriptions of this product.', { counter: 'product_id' }),
    status: {
      schema: Type.String({ enum: [...STATUSES], description: 'Only subscriptions with this status.' }),
      where: (value) => `s.status = ${value}`,
      counter: 'status',
    },
    email: {
      schema: Type.String({
        description: 'Only subscriptions whose profile has this e-mail address, case-insensitive.',
      }),
      // As an array the profiles are found first. For a join the planner would scan all subscriptions.
      where: (value) =>
        `s.profile_id = any(array(select id from profiles where project_id = $1 and email_folded = ${value}))`,
      param: foldQueriedEmail,
      selective: true,
    },
    created_after: {
      schema: Type.String({ format: 'date-time', description: 'Only subscriptions created after this instant.' }),
      where: (value) => `s.created_at > ${value}`,
    },
  },
})

const detail = { ...list, shape: subscriptionDetail, joins: DETAIL_JOINS }

export function subscriptions(app: FastifyInstance, { reads }: PublicContext): void {
  listRoute(app, reads, '/subscriptions', list, {
    operationId: 'listSubscriptions',
    tag: 'Subscriptions',
    summary: 'List subscriptions',
    description:
      'Newest first. With an `updated_at` filter: oldest change first, for a sync; the response then has `X-Sync-Horizon`. Filters combine with AND.',
  })
  detailRoute(app, reads, '/subscriptions/:id', detail, {
    operationId: 'getSubscription',
    tag: 'Subscriptions',
    summary: 'Get a subscription',
    description: 'The item of the list, with its funnel, experiment, session, trial, pause and cancellation.',
  })
}
