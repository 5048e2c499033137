// Lost movements: charges and refunds that Tundish made and that have no order here, after a restored backup or a failover.
import { Type } from '../../lib/shape/schema.ts'
import { decimal, instant, shape, text } from '../../lib/shape/shape.ts'
import { billingContext } from '../../payments/billing/context.ts'
import { adoptLost } from '../../payments/billing/reconcile/lost.ts'
import { IS_LOST, IS_OPEN } from '../../payments/providers/lost-movements.ts'
import { notFound } from './exist.ts'
import { list, ofOrganization } from './list.ts'
import { accountOf } from './merchant-accounts.ts'
import { act, change, type Input } from './operation.ts'

const TAG = 'Orders'
const PATH = '/organizations/:organization_id/lost-movements'
const ONE = `${PATH}/:psp/:psp_merchant_id/:transaction_id` as const

const lostMovement = shape('LostMovement', 'l', {
  psp: text('Payment provider.', { example: 'stripe' }),
  psp_merchant_id: text('Account at the provider.', { example: 'main' }),
  transaction_id: text('The provider’s id of the charge or refund.', { example: 'pi_3NGk1a2eZvKYlo2C0m5v1tWc' }),
  type: text('Kind of movement.', { enum: ['charge', 'refund'] }),
  state: text('Whether money moved: `pending` if the provider has not decided yet, `failed` if it declined.', {
    enum: ['moved', 'pending', 'failed'],
  }),
  amount: decimal('Amount in major units.', { example: 10.5 }),
  currency_code: text('ISO 4217 code.', { example: 'USD' }),
  provider_customer: text('The provider’s customer; null if it named none.', { nullable: true }),
  provider_key: text('The key under which the provider knows it; null for a refund made at the provider.', {
    nullable: true,
  }),
  reference: text('The lost order or refund; null for a refund made at the provider.', { nullable: true }),
  moved_at: instant('When it was made.'),
  found_at: instant('When it was found to be lost.'),
})

const adopt = act({
  id: 'adoptLostMovement',
  right: 'manage',
  command: 'reconcile adopt',
  method: 'POST',
  path: `${ONE}/adopt`,
  tag: TAG,
  summary: 'Bring back the order of a lost charge',
  description:
    'Makes the order with its consumable, its payment and its refunds, as the provider reports them; nothing is charged. A caller that repeats the key gets this order. The customer is found by the provider’s customer in the payments that are here.',
  body: Type.Named('LostMovementAdoption', {
    external_id: Type.Optional(
      Type.String({ description: 'The customer, if it cannot be found.', minLength: 1, maxLength: 256 }),
    ),
  }),
  response: Type.Named('LostMovementAdopted', {
    order_id: Type.String({ description: 'The order.' }),
    external_id: Type.String({ description: 'The customer.' }),
    status: Type.String({ description: 'Its state now.' }),
  }),
  entry: ({ params, body }) => ({
    action: 'lost_movement.adopt_asked',
    target: nameOf(params),
    after: { external_id: body.external_id ?? null },
  }),
  async act(app, { params, body }) {
    const { organization_id, psp, psp_merchant_id, transaction_id } = params
    const [known] = await app.db.query(FIND, [organization_id, psp, psp_merchant_id, transaction_id])
    if (!known) throw notFound('lost charge', transaction_id)
    const lost = {
      organizationId: organization_id,
      psp,
      merchantId: psp_merchant_id,
      transactionId: transaction_id,
    }
    const order = await adoptLost(billingContext(app), lost, body.external_id)
    return { order_id: order.order_id, external_id: order.external_id, status: order.status }
  },
})

const accept = change({
  id: 'acceptLostMovement',
  right: 'manage',
  command: 'reconcile accept',
  method: 'POST',
  path: `${ONE}/accept`,
  tag: TAG,
  summary: 'Accept that a lost movement was made elsewhere',
  description:
    'For movements that another installation made with the same merchant account: they are no longer listed, and `reconcile` does not report them, nor the refunds of such a charge. A charge of the same key is still never made again.',
  body: Type.Named('LostMovementAcceptance', {
    because: Type.String({ description: 'How you know; stored with it.', minLength: 1, maxLength: 1000 }),
  }),
  response: lostMovement.schema,
  async change(query, { params, body }) {
    const { organization_id, psp, psp_merchant_id, transaction_id } = params
    const [row] = await query(ACCEPT, [organization_id, psp, psp_merchant_id, transaction_id, body.because])
    if (!row) throw notFound('lost movement', transaction_id)
    const result = lostMovement.readNamed(row)
    return {
      entry: { action: 'lost_movement.accepted', target: nameOf(params), after: { because: body.because } },
      result,
    }
  },
})

const FIND = `
  select 1 from lost_movements l where l.organization_id = $1 and l.psp = $2 and l.psp_merchant_id = $3
    and l.transaction_id = $4 and l.type = 'charge'`

const ACCEPT = `
  update lost_movements l set accepted_at = db_clock(), accepted_because = $5
  where l.organization_id = $1 and l.psp = $2 and l.psp_merchant_id = $3 and l.transaction_id = $4 and ${IS_LOST}
  returning ${lostMovement.namedColumns}`

const nameOf = (params: Input['params']) => `movement ${params.transaction_id} of ${accountOf(params)}`

export const lostMovements = [
  list({
    id: 'listLostMovements',
    right: 'people',
    command: 'reconcile lost',
    columns: ['psp', 'psp_merchant_id', 'transaction_id', 'type', 'state', 'amount', 'currency_code', 'moved_at'],
    path: PATH,
    tag: TAG,
    summary: 'List lost movements',
    description:
      'Charges and refunds that Tundish made and that have no order here, because a restored backup or a failover has lost it. A key that is charged again brings its charge back.',
    shape: lostMovement,
    from: 'lost_movements l',
    at: 'l.found_at',
    // A name may be too long for a cursor.
    key: `md5(l.psp || ' ' || l.psp_merchant_id || ' ' || l.type || ' ' || l.transaction_id)`,
    ...ofOrganization('l', IS_OPEN),
  }),
  adopt,
  accept,
] as const
