// SQL: the payment whose saved card a charge uses; `of` is a row with `organization_id` and `external_id`.

/** The customer's successful payments, as `r`. */
export const paymentsOf = (of: string) => `from report_transactions r
  where r.organization_id = ${of}.organization_id and r.external_id = ${of}.external_id
    and r.psp_transaction_type = 'sale' and r.status = 'succeeded'`

/** The latest of them that saved a card, unless the cards of the `customer` were erased. */
export const savedCardOf = (of: string, customer: string) => `${paymentsOf(of)} and r.payment_method_token is not null
    and ${customer}.cards_erased_at is null order by r.trx_created_at desc limit 1`
