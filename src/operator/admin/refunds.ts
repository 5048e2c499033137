// Refunds that have been in progress for too long. All others are in the timelines of their orders.
import { boolean, decimal, instant, integer, shape, text } from '../../lib/shape/shape.ts'
import { listStuck } from './stuck.ts'

const refundInProgress = shape('RefundInProgress', 'r', {
  organization_id: text('Organization.'),
  refund_id: text('Identifier.', { example: '0199f0a6-52f0-7d51-8f0f-6f3d1c1b6a55' }),
  order_id: text('The order. No other refund of it can begin while this one is in progress.'),
  external_id: text('The customer.'),
  idempotency_key: text('Idempotency key of the refund; null if none was given.', { nullable: true }),
  amount: decimal('Amount in major units.', { example: 10.5 }),
  currency_code: text('ISO 4217 code.', { example: 'USD' }),
  soft_refund: boolean('Whether the customer keeps the consumable.'),
  psp: text('Payment provider.', { sql: 'o.psp', example: 'simulator' }),
  psp_merchant_id: text('Account at the provider.', { sql: 'o.psp_merchant_id', nullable: true }),
  provider_key: text('The key under which the provider knows the refund.'),
  created_at: instant('When it began.'),
  pending_since: instant('Since when the provider reports the refund as pending; null if it does not.', {
    nullable: true,
  }),
  status_checks: integer('Number of times the provider was asked for the outcome.', { sql: 'r.looks' }),
  next_check_at: instant('When the provider is asked next.', { sql: 'r.next_look_at' }),
})

export const refunds = [
  listStuck({
    id: 'listStuckRefunds',
    right: 'people',
    command: 'refund stuck',
    columns: [
      'organization_id',
      'refund_id',
      'order_id',
      'amount',
      'currency_code',
      'created_at',
      'pending_since',
      'status_checks',
    ],
    path: '/refunds/stuck',
    summary: 'List refunds in progress too long',
    shape: refundInProgress,
    reach: { organization: 'o.organization_id', project: 'o.project_id' },
    from: 'refunds r join orders o using (organization_id, order_id)',
    table: 'r',
    key: 'r.refund_id',
  }),
] as const
