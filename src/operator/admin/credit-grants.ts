// Grants of credits with what is left of them, and holds.
import { decimal, instant, shape, text } from '../../lib/shape/shape.ts'
import { ofCustomer, PATH, TAG } from './credit-units.ts'
import { equals, list, ofOrganization } from './list.ts'

const customer = {
  external_id: text('The customer.', { example: 'ada' }),
  unit: text('The unit.', { example: 'tokens' }),
}
const amount = (row: string, column: string, description: string, nullable = false) =>
  decimal(description, { sql: `trim_scale(${row}.${column})`, nullable, example: 100 })

const grant = shape('CreditGrant', 'g', {
  grant_id: text('Identifier (UUID).'),
  ...customer,
  amount: amount('g', 'amount', 'What was granted.'),
  remaining: amount('g', 'remaining', 'What is left of it.'),
  expired: amount('g', 'expired', 'What of it has expired.'),
  revoked: amount('g', 'revoked', 'What of it a refund or dispute has revoked.'),
  expires_at: instant('When it expires; null: never.', { nullable: true }),
  order_id: text('The charge that granted it.', { nullable: true }),
  created_at: instant('When it was granted.'),
})

const HOLD_STATUSES = ['open', 'captured', 'released', 'expired']

const hold = shape('CreditHold', 'h', {
  hold_id: text('Identifier (UUID).'),
  ...customer,
  amount: amount('h', 'amount', 'What was reserved.'),
  captured: amount('h', 'captured', 'What was spent of it; null unless it was captured.', true),
  status: text('What became of it.', { enum: HOLD_STATUSES, example: 'open' }),
  expires_at: instant('When it ends unless it is captured or released.'),
  created_at: instant('When it began.'),
})

export const creditGrants = [
  list({
    id: 'listCreditGrants',
    right: 'people',
    command: 'credits grants',
    columns: ['created_at', 'external_id', 'unit', 'amount', 'remaining', 'expires_at', 'order_id'],
    path: `${PATH}/grants`,
    tag: TAG,
    summary: 'List grants of credits',
    shape: grant,
    from: 'credit_grants g',
    at: 'g.created_at',
    key: 'g.grant_id::text',
    filters: ofCustomer('g'),
    ...ofOrganization('g'),
  }),
  list({
    id: 'listCreditHolds',
    right: 'people',
    command: 'credits holds',
    columns: ['created_at', 'external_id', 'unit', 'amount', 'captured', 'status', 'expires_at'],
    path: `${PATH}/holds`,
    tag: TAG,
    summary: 'List holds of credits',
    shape: hold,
    from: 'credit_holds h',
    at: 'h.created_at',
    key: 'h.hold_id::text',
    filters: {
      ...ofCustomer('h'),
      status: equals('h.status', 'Only those with this status.', { enum: HOLD_STATUSES }),
    },
    ...ofOrganization('h'),
  }),
] as const
