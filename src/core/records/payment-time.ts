// The time of a payment, which differs from the time of its row: a row may be stored long after the payment was made.

/**
 * SQL: when the money of the row `row` of `report_transactions` moved or was declined: the provider's time, or that of the row if
 * the provider's is not known. Indexes contain exactly this expression.
 */
export const paidAt = (row: string) => `coalesce(${row}.psp_date, ${row}.trx_created_at)`
