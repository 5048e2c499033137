// What the page of a person shows of the payment report: what went back, and what was declined.
import { IS_TEST } from '../../core/records/payment-account.ts'
import { moveOf } from '../../core/records/payment-move.ts'
import { paidAt } from '../../core/records/payment-time.ts'
import { boolean, decimal, instant, shape, text } from '../../lib/shape/shape.ts'
import { movementFields } from './money-back.ts'

const sandbox = boolean('Whether it is test data.', { sql: IS_TEST })

export const moneyBack = shape('PersonMoneyBack', 'r', {
  ...movementFields,
  sandbox,
  move: text(
    'Which way the money moved: `refund_failed` and `chargeback_reversal` bring it back; null if none moved.',
    {
      sql: moveOf('r'),
      nullable: true,
    },
  ),
})

export const declined = shape('PersonDeclinedPayment', 'r', {
  trx_id: text('Row of the payment report.'),
  order_id: text('Order.'),
  external_id: text('The customer.'),
  subscription_id: text('The subscription it was to pay for.', { sql: 'r.meta_subs_id', nullable: true }),
  amount: decimal('Amount in major units.'),
  currency_code: text('Currency.'),
  psp: text('Payment provider.'),
  psp_reason_code: text('The provider’s code for the reason.', { nullable: true }),
  psp_reason_message: text('The provider’s reason.', { nullable: true }),
  psp_reason_decline_type: text('`soft`: a later attempt may succeed; `hard`: none will.', { nullable: true }),
  network: text('Network of the card.', { nullable: true }),
  pm_data_last4: text('Last four digits of the card.', { nullable: true }),
  trx_created_at: instant('When it was recorded.'),
  paid_at: instant('When it was declined, according to the provider.', { sql: paidAt('r') }),
  sandbox,
})
