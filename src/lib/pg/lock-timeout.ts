// Limits the wait for each lock in the rest of a transaction.

/**
 * SQL: the common table expression `limited`. It sets `lock_timeout` to the value of this parameter until the transaction
 * ends; null changes nothing. Select from it wherever the statement locks rows.
 */
export const limitWaits = (parameter: string) =>
  `limited as materialized (
      select set_config('lock_timeout', coalesce(${parameter}, current_setting('lock_timeout')), true))`
