// Money that went back to customers: refunds and disputes of an organization.
import { ACCOUNT, IS_TEST } from '../../core/records/payment-account.ts'
import { moveOf } from '../../core/records/payment-move.ts'
import { paidAt } from '../../core/records/payment-time.ts'
import { withAndWithoutPeople } from '../../core/records/without-people.ts'
import { isUuid } from '../../lib/ids.ts'
import { Type } from '../../lib/shape/schema.ts'
import { boolean, decimal, instant, text } from '../../lib/shape/shape.ts'
import { dayFiltersOf, isPreview, testFilter, valueFilter } from './day-filters.ts'
import { equals, list, ofOrganization } from './list.ts'

const TAG = 'Orders'

const [refund, refundWithoutPeople] = withAndWithoutPeople('RefundSummary', 'r', ['external_id', 'reason'], {
  refund_id: text('Identifier.'),
  order_id: text('The order that is refunded.'),
  external_id: text('The customer.'),
  project_id: text('Project.', { sql: 'o.project_id' }),
  status: text('State.', { enum: ['processing', 'succeeded', 'failed'] }),
  amount: decimal('Amount in major units.'),
  currency_code: text('Currency.'),
  soft_refund: boolean('Whether the customer keeps the consumable.'),
  reason: text('Reason; empty after an erasure.'),
  consumable_revoked: boolean('Whether what was bought was revoked.', {
    sql: `exists (select from consumables c where c.organization_id = r.organization_id and c.order_id = r.order_id
      and not c.is_active)`,
  }),
  created_at: instant('When it was begun.'),
  settled_at: instant('When its outcome became known.', { nullable: true }),
})

/** The fields of a refund or dispute in the payment report. */
export const movementFields = {
  trx_id: text('Row of the payment report.'),
  order_id: text('Order.'),
  external_id: text('The customer.'),
  psp_transaction_type: text('`refund`, `chargeback` or `chargeback_reversal`.'),
  status: text('State.'),
  amount: decimal('Amount in major units, always positive.'),
  currency_code: text('Currency.'),
  psp: text('Payment provider.'),
  psp_reason_code: text('The provider’s code for the reason.', { nullable: true }),
  psp_reason_message: text('The provider’s reason.', { nullable: true }),
  trx_created_at: instant('When it was recorded.'),
  paid_at: instant('When it happened, according to the provider.', { sql: paidAt('r') }),
}

const { trx_id, order_id, external_id, ...others } = movementFields
const project_id = text('Project.', { sql: 'c.project_id' })
const [movement, movementWithoutPeople] = withAndWithoutPeople('MoneyBack', 'r', ['external_id'], {
  trx_id,
  order_id,
  external_id,
  project_id,
  ...others,
})

export const moneyBack = [
  list({
    id: 'listRefunds',
    right: 'reports',
    command: 'refund list',
    path: '/organizations/:organization_id/refunds',
    tag: TAG,
    summary: 'List refunds',
    description: 'Refunds made through Tundish.',
    shape: refund,
    withoutPeople: refundWithoutPeople,
    reach: { organization: 'o.organization_id', project: 'o.project_id' },
    from: 'refunds r join orders o using (organization_id, order_id)',
    at: 'r.created_at',
    key: 'r.refund_id',
    isKey: isUuid,
    ...ofOrganization('r'),
    filters: {
      project_id: equals('o.project_id', 'Only those of this project.'),
      status: equals('r.status', 'Only those in this state.', { enum: ['processing', 'succeeded', 'failed'] }),
    },
  }),
  list({
    id: 'listMoneyBack',
    right: 'reports',
    command: 'refund report',
    path: '/organizations/:organization_id/money-back',
    tag: TAG,
    summary: 'List refunds and disputes of the payment report',
    description: 'Refunds and disputes, including imported ones.',
    shape: movement,
    withoutPeople: movementWithoutPeople,
    reach: { organization: 'c.organization_id', project: 'c.project_id' },
    from: `report_transactions r join customers c using (organization_id, external_id) ${ACCOUNT}`,
    at: paidAt('r'),
    key: 'r.trx_id',
    isKey: isUuid,
    ...ofOrganization('r', `r.psp_transaction_type <> 'sale'`),
    filters: {
      project_id: equals('c.project_id', 'Only those of this project.'),
      type: equals('r.psp_transaction_type', 'Only those of this type.', {
        enum: ['refund', 'chargeback', 'chargeback_reversal'],
      }),
      move: {
        schema: Type.String({
          enum: ['refund', 'refund_failed', 'chargeback', 'chargeback_reversal'],
          description:
            'Only those that moved money in this way: `figures show refund_count` counts `refund`, `chargeback_count` counts `chargeback`. A refund that failed at once moved none.',
        }),
        where: (value) => `${moveOf('r')} = ${value}`,
      },
      ...dayFiltersOf('c.project_id', paidAt('r')),
      reason: valueFilter('r.psp_reason_code', 'Only those with this reason code.'),
      provider: equals('r.psp', 'Only those at this payment provider.'),
      test: testFilter(`(${IS_TEST} or coalesce(${isPreview('c')}, false))`),
    },
  }),
] as const
