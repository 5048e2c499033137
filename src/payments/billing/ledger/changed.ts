// The stamp of a change that the billing lists show.

/**
 * SQL of the new `updated_at` of a row of an order: stamped under the lock of the order's project, so that the project's
 * sync horizon holds for it, and later than the row's last stamp.
 */
export const changedOf = (table: 'consumables' | 'refunds') => `greatest(
  (select begin_write(o.project_id) from orders o
    where o.organization_id = ${table}.organization_id and o.order_id = ${table}.order_id),
  ${table}.updated_at + interval '1 microsecond')`
