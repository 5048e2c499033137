// The merchant account of a payment, and whether it moves play money.

/** SQL: the merchant account `m` of a row `r` of the report. */
export const ACCOUNT = `left join merchant_accounts m
  on m.organization_id = r.organization_id and m.psp = r.psp and m.psp_merchant_id = r.psp_merchant_id`

/** SQL: whether a row `r` is test data: its account is a sandbox or, if the account was never connected, it is a charge at the simulator. */
export const IS_TEST = `coalesce(m.is_sandbox, not r.imported and r.psp = 'simulator')`
