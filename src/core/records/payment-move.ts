// The direction of the money in a row of the payment report, whose amounts are always positive.

export const MOVES = ['sale', 'refund', 'refund_failed', 'chargeback', 'chargeback_reversal'] as const
export type Move = (typeof MOVES)[number]

/** The moves by which the merchant gets money; by the others it pays. */
export const INCOMING: readonly Move[] = ['sale', 'refund_failed', 'chargeback_reversal']

/** SQL: whether the row is a refund that succeeded, also if it failed afterwards. */
export const isRefund = (row: string) =>
  `${row}.psp_transaction_type = 'refund' and ${row}.status in ('refunded', 'succeeded')`

/**
 * SQL: the move of the row `row` of `report_transactions`, or null when no money moved (a declined payment, a refund that
 * failed) or the type is unknown. A refund that failed after it had succeeded has a second row about the same movement at
 * the provider: `refund_failed` takes back the first.
 */
export const moveOf = (row: string) => `case
  when ${row}.psp_transaction_type = 'sale' and ${row}.status = 'succeeded' then 'sale'
  when ${isRefund(row)} then 'refund'
  when ${row}.psp_transaction_type = 'refund' and ${row}.status = 'failed' and ${row}.psp_transaction_id is not null
    and exists (
      select from report_transactions earlier
      where earlier.organization_id = ${row}.organization_id and earlier.order_id = ${row}.order_id
        and earlier.trx_created_at < ${row}.trx_created_at and ${isRefund('earlier')}
        and earlier.psp_transaction_id = ${row}.psp_transaction_id) then 'refund_failed'
  when ${row}.psp_transaction_type = 'chargeback' and ${row}.status <> 'failed' then 'chargeback'
  when ${row}.psp_transaction_type = 'chargeback_reversal' and ${row}.status <> 'failed' then 'chargeback_reversal'
end`
