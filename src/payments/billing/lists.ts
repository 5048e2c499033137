// Lists of consumables, refunds and disputes: newest first, or by windows of changes with a horizon.
import type { FastifyInstance } from 'fastify'
import { listQuery, pageSchema } from '../../core/lists/list.ts'
import { VOID_DESCRIPTION, VOID_HEADER } from '../../core/lists/void.ts'
import { problems } from '../../lib/http/problems.ts'
import { sendJson } from '../../lib/http/send-json.ts'
import type { Db } from '../../lib/pg/db.ts'
import { Type } from '../../lib/shape/schema.ts'
import { boolean, decimal, instant, type Shape, shape, text } from '../../lib/shape/shape.ts'
import { type BillingList, servePage } from './list-page.ts'
import { describe, lineOf } from './route.ts'

const shared = {
  order_id: text('Order of the charge (UUID).'),
  external_id: text('Identifier of the user.', { example: 'user-1042' }),
  amount: decimal('Amount in major units.', { example: 10.5 }),
  currency_code: text('ISO 4217 code.', { example: 'USD' }),
}
const updated_at = instant('When it was last changed.')

const consumable = shape('ListedConsumable', 'c', {
  consumable_id: text('Identifier (UUID).'),
  ...shared,
  is_active: boolean('False after it was revoked.'),
  granted_at: instant('When it was granted.'),
  revoked_at: instant('When it was revoked.', { nullable: true }),
  updated_at,
})

const refund = shape('ListedRefund', 'r', {
  refund_id: text('Identifier (UUID).'),
  ...shared,
  refund_status: text('`succeeded` or `failed`; also `failed` if it failed after it had succeeded.', {
    sql: 'r.status',
    enum: ['succeeded', 'failed'],
  }),
  soft_refund: boolean('Whether it moved no money and revoked nothing.'),
  created_at: instant('When it was requested.'),
  settled_at: instant('When its outcome was known.'),
  updated_at,
})

const dispute = shape('ListedDispute', 'd', {
  dispute_id: text('Identifier at the payment provider.'),
  ...shared,
  external_id: text('Identifier of the user.', { sql: 'o.external_id', example: 'user-1042' }),
  dispute_status: text('State.', { sql: 'd.status', enum: ['open', 'won', 'lost'] }),
  reason: text('The provider’s code for the reason.', { nullable: true, example: 'fraudulent' }),
  opened_at: instant('When it was opened.'),
  funds_withdrawn_at: instant('When the bank took the amount back.', { nullable: true }),
  funds_reinstated_at: instant(
    'When the amount was returned; for a lost dispute, the part that had been refunded before.',
    {
      nullable: true,
    },
  ),
  created_at: instant('When it was recorded.'),
  updated_at,
})

const LISTS: (BillingList & { operationId: string; summary: string; description: string })[] = [
  {
    path: '/consumables',
    operationId: 'listConsumables',
    summary: 'List consumables',
    description: 'What charges granted, newest first. With an `updated_at` filter: oldest change first, for a sync.',
    ...rowsOf(consumable, 'c', 'consumables', 'granted_at', ['consumable_id']),
  },
  {
    path: '/refunds',
    operationId: 'listSettledRefunds',
    summary: 'List refunds',
    description:
      'Refunds whose outcome is known, newest first. With an `updated_at` filter: oldest change first, for a sync.',
    ...rowsOf(refund, 'r', 'refunds', 'created_at', ['refund_id'], "r.status <> 'processing'"),
  },
  {
    path: '/disputes',
    operationId: 'listDisputes',
    summary: 'List disputes',
    description: 'Disputes of charges, newest first. With an `updated_at` filter: oldest change first, for a sync.',
    ...rowsOf(dispute, 'd', 'disputes', 'created_at', ['dispute_id', 'order_id']),
    joins: 'join orders o on o.organization_id = d.organization_id and o.order_id = d.order_id',
  },
]

function rowsOf(shape: Shape, alias: string, table: string, createdAt: string, key: string[], where?: string) {
  return { shape, alias, table, createdAt, key, joins: '', ...(where !== undefined && { where }) }
}

const MAX_LIMIT = 500

export function billingLists(app: FastifyInstance, { db }: { db: Db }): void {
  for (const { operationId, summary, description, ...list } of LISTS) {
    const { properties } = listQuery({ filters: {}, maxLimit: MAX_LIMIT })
    const cursor = Type.String({ description: '`pagination.next_cursor` of the previous page, unchanged.' })
    const querystring = Type.Object({ ...properties, cursor: Type.Optional(cursor) })
    const schema = {
      ...describe({ operationId, summary, description }),
      querystring,
      response: { 200: page(list.shape), ...problems(400, 401, 403) },
    }
    app.get(list.path, { schema }, async ({ organizationId, query }, reply) => {
      const page = await servePage(db, list, organizationId, lineOf(organizationId), query as never)
      if (page.horizon !== undefined) reply.header('x-sync-horizon', page.horizon)
      if (page.voidFrom !== undefined) reply.header(VOID_HEADER, page.voidFrom)
      return sendJson(reply, page.json)
    })
  }
}

function page(shape: Shape): object {
  const horizon = {
    type: 'string',
    format: 'date-time',
    description: 'Only with an `updated_at` filter: every change stamped before this instant is visible now.',
  }
  const content = { 'application/json': { schema: pageSchema({ shape }) } }
  const headers = { 'X-Sync-Horizon': horizon, 'X-Void-From': VOID_DESCRIPTION }
  return { description: 'A page of the list.', headers, content }
}
