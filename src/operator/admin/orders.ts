// Orders: the list, an order with its timeline, refunding and resolving it, and charges in progress for too long.
import type { App } from '../../app.ts'
import { invalidValue } from '../../lib/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import { jsonOf } from '../../lib/json/json.ts'
import type { JsonObject } from '../../lib/json/read.ts'
import type { Param } from '../../lib/pg/types.ts'
import { type Schema, Type } from '../../lib/shape/schema.ts'
import { boolean, decimal, instant, integer, json, shape, text } from '../../lib/shape/shape.ts'
import { billingContext } from '../../payments/billing/context.ts'
import { findEither, resolve } from '../../payments/billing/reconcile/resolve.ts'
import { refund } from '../../payments/billing/refund/refund.ts'
import { readRefundRequest, refundIn } from '../../payments/billing/refund/request.ts'
import { refundOut } from '../../payments/billing/refund/response.ts'
import { notFound } from './exist.ts'
import { equals, list, ofOrganization } from './list.ts'
import { act, type Input, type ParamsOf, reading } from './operation.ts'
import { reachCondition } from './reach.ts'
import { listStuck } from './stuck.ts'
import { readTimeline, timelineEntry } from './timeline.ts'

const TAG = 'Orders'
const PATH = '/organizations/:organization_id/orders'
const ONE = `${PATH}/:order_id` as const

const fields = {
  organization_id: text('Organization.'),
  order_id: text('Identifier.', { example: '0199f0a6-52f0-7d51-8f0f-6f3d1c1b6a55' }),
  external_id: text('The customer.'),
  project_id: text('The project of the customer.'),
  idempotency_key: text('Idempotency key of the charge.'),
  status: text('State.', { enum: ['processing', 'succeeded', 'failed', 'cancelled'] }),
  amount: decimal('Amount in major units.', { example: 10.5 }),
  currency_code: text('ISO 4217 code.', { example: 'USD' }),
  amount_refunded: decimal('Sum of the refunds that succeeded.', { sql: 'round(o.amount_refunded, scale(o.amount))' }),
  failed_message_for_user: text('Error message for the customer; empty unless the charge failed.'),
  psp: text('Payment provider.', { example: 'simulator' }),
  psp_merchant_id: text('Account at the provider.', { nullable: true }),
  created_at: instant('When it was claimed.'),
  settled_at: instant('When the outcome became known.', { nullable: true }),
  pending_since: instant('Since when the provider reports the charge as pending; null if it does not.', {
    nullable: true,
  }),
  status_checks: integer('Number of times the provider was asked for the outcome.', { sql: 'o.looks' }),
  next_check_at: instant('When the provider is asked next.', {
    sql: 'o.next_look_at',
    nullable: true,
  }),
}

const order = shape('Order', 'o', fields)
const orderDetail = shape('OrderDetail', 'o', {
  ...fields,
  region: text('Region of the account.', { nullable: true }),
  source_trx_id: text('The payment whose card was charged.'),
  provider_key: text('The key under which the provider knows the charge.'),
  resolved_because: text('How the operator who resolved it knew the outcome.', { nullable: true }),
  client_metadata: json('Metadata of the caller; null after an erasure.', {
    nullable: true,
    schema: { type: 'object', additionalProperties: true } as Schema<Record<string, unknown>>,
  }),
  consumable_id: text('The consumable it granted.', { sql: 'c.consumable_id', nullable: true }),
  consumable_active: boolean('Whether the consumable is active.', { sql: 'c.is_active', nullable: true }),
})

const FIND = {
  name: 'find order with consumable',
  text: `select ${orderDetail.columns} from orders o
         left join consumables c on c.organization_id = o.organization_id and c.order_id = o.order_id
         where o.organization_id = $1 and o.order_id = $2`,
}

const get = reading({
  id: 'getOrder',
  right: 'people',
  narrows: true,
  command: 'order show',
  path: ONE,
  tag: TAG,
  summary: 'Get an order with its timeline',
  description:
    'The timeline has the claim, the calls to the provider, the outcome, refunds, and events with their deliveries.',
  response: Type.Named('OrderWithTimeline', {
    order: orderDetail.schema,
    timeline: Type.Array(timelineEntry, { description: 'What happened, oldest first.' }),
  }),
  async run({ db }, { params, access }) {
    const { organization_id, order_id } = params
    if (access.reach) await customerOf({ db }, params, access)
    const [row] = isUuid(order_id) ? await db.read(FIND, [organization_id, order_id]) : []
    if (!row) throw notFound('order', order_id)
    return jsonOf({ order: orderDetail.one(row), timeline: await readTimeline(db, organization_id, order_id) })
  },
})

/** The customer of an order. Throws a 404 for an order that does not exist, or that the operator does not reach. */
async function customerOf(
  { db }: Pick<App, 'db'>,
  { organization_id, order_id }: ParamsOf<typeof ONE>,
  { reach }: Input['access'],
): Promise<string> {
  const values: Param[] = [organization_id, order_id]
  const within = reachCondition(reach, { organization: 'organization_id', project: 'project_id' }, values) ?? 'true'
  const [row] = isUuid(order_id)
    ? await db.query(
        `select external_id from orders where organization_id = $1 and order_id = $2 and ${within}`,
        values,
      )
    : []
  if (!row) throw notFound('order', order_id)
  return row.external_id!
}

const { external_id: _external, order_id: _order, ...refundFields } = refundIn.properties

const refundOrder = act({
  id: 'refundOrder',
  right: 'refund',
  narrows: true,
  command: 'order refund',
  method: 'POST',
  path: `${ONE}/refund`,
  tag: TAG,
  summary: 'Refund an order',
  description: 'As in the billing API: the whole remaining amount, or a part of it with an idempotency key.',
  body: Type.Named('OrderRefund', refundFields),
  response: refundOut,
  entry: ({ params, body, exact = body }) => {
    const { amount, soft_refund, idempotency_key } = exact as Record<string, string | boolean | undefined>
    return {
      action: 'order.refund_asked',
      target: `order ${params.order_id} of organization ${params.organization_id}`,
      after: { amount: amount ?? 'all that is left', soft_refund: soft_refund ?? false, idempotency_key },
    }
  },
  checkInput: ({ params, body, exact = body }) => void refundRequest(params, exact),
  async describe({ db }, { params, body }) {
    const { organization_id, order_id } = params
    const [found] = isUuid(order_id)
      ? await db.query(
          `select external_id, currency_code, status, amount, round(amount_refunded, scale(amount)) as refunded,
             amount - round(amount_refunded, scale(amount)) as remaining
           from orders where organization_id = $1 and order_id = $2`,
          [organization_id, order_id],
        )
      : []
    if (!found) throw notFound('order', order_id)
    const { external_id, currency_code, status, amount, refunded, remaining } = found
    const sum = `${body.amount ?? remaining} ${currency_code}`
    return [
      body.soft_refund === true
        ? `Records a soft refund of ${sum}: no money moves.`
        : `Refunds ${sum} to the card of customer ${external_id}; a full refund revokes what the charge granted.`,
      `Order ${order_id}: ${status}, ${amount} ${currency_code}, of which ${refunded} refunded so far.`,
    ].join('\n')
  },
  async act(app, { params, body, exact = body, access }) {
    const external_id = await customerOf(app, params, access)
    const request = { ...refundRequest(params, exact, external_id), limits: access.refundLimits }
    return refund(billingContext(app), params.organization_id, request)
  },
})

const refundRequest = ({ order_id }: ParamsOf<typeof ONE>, exact: Input['body'], external_id = '') =>
  readRefundRequest({ ...(exact as JsonObject), external_id, order_id })

const resolveOrder = act({
  id: 'resolveOrder',
  right: 'manage',
  narrows: true,
  command: 'order resolve',
  method: 'POST',
  path: `${ONE}/resolve`,
  tag: TAG,
  summary: 'Set the outcome of a charge whose outcome the provider will never know',
  description:
    'The outcome is looked up at the provider once more. If the provider knows it, that outcome is stored and the request is refused.',
  body: Type.Named('OrderResolution', {
    as: Type.String({ enum: ['succeeded', 'failed', 'cancelled'], description: 'The outcome.' }),
    because: Type.String({
      description: 'How you know the outcome; stored with the charge.',
      minLength: 1,
      maxLength: 1000,
    }),
  }),
  response: Type.Named('OrderResolved', {
    order_id: Type.String({ description: 'The order.' }),
    status: Type.String({ description: 'Its state now.' }),
  }),
  checkInput({ body }) {
    if (body.because.trim() === '') throw invalidValue('because must say why.')
  },
  entry: ({ params, body }) => ({
    action: 'order.resolve_asked',
    target: `order ${params.order_id} of organization ${params.organization_id}`,
    after: { as: body.as },
  }),
  async act(app, { params, body, access }) {
    const { order_id } = params
    await customerOf(app, params, access)
    const { as, because } = body
    const context = billingContext(app)
    const { row } = await resolve(context, await findEither(app.db, order_id), as, because)
    return { order_id, status: row.status }
  },
})

export const orders = [
  list({
    id: 'listOrders',
    right: 'people',
    command: 'order list',
    columns: ['order_id', 'external_id', 'status', 'amount', 'currency_code', 'created_at'],
    path: PATH,
    tag: TAG,
    summary: 'List orders',
    shape: order,
    reach: { organization: 'o.organization_id', project: 'o.project_id' },
    from: 'orders o',
    at: 'o.created_at',
    key: 'o.order_id',
    isKey: isUuid,
    ...ofOrganization('o'),
    filters: {
      project_id: equals('o.project_id', 'Only those of this project.'),
      external_id: equals('o.external_id', 'Only those of this customer.'),
      status: equals('o.status', 'Only those in this state.', {
        enum: ['processing', 'succeeded', 'failed', 'cancelled'],
      }),
    },
  }),
  get,
  refundOrder,
  resolveOrder,
  listStuck({
    id: 'listStuckOrders',
    right: 'people',
    command: 'order stuck',
    columns: ['organization_id', 'order_id', 'external_id', 'amount', 'currency_code', 'created_at', 'status_checks'],
    path: '/orders/stuck',
    summary: 'List charges in progress too long',
    shape: order,
    reach: { organization: 'o.organization_id', project: 'o.project_id' },
    from: 'orders o',
    table: 'o',
    key: 'o.order_id',
  }),
] as const
