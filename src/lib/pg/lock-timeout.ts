// Bounds how long the rest of a transaction waits for each lock.

/**
 * SQL: the common table expression `limited`, which sets `lock_timeout` until the transaction ends, to the value of this
 * parameter; null changes nothing. Select from it wherever the statement locks.
 */
export const limitWaits = (parameter: string) =>
  `limited as materialized (
      select set_config('lock_timeout', coalesce(${parameter}, current_setting('lock_timeout')), true))`
