-- breaking: no
--
-- What operators look for: people by the e-mail of a customer, deliveries by their age, and what was said to a provider
-- about an order.

create index customers_by_email on customers (organization_id, lower(email)) where email is not null;
create index orders_by_creation on orders (organization_id, created_at, order_id);
create index webhook_deliveries_by_creation on webhook_deliveries (project_id, created_at);

-- The calls to a provider about an order, in the order they were made: what the order's own row does not tell. Notes
-- without a foreign key: they are written beside the charge, which must not wait for them nor they for it.
create table order_log (
  organization_id text collate "C" not null,
  order_id        uuid not null,
  at              timestamptz not null,
  -- `charge`, `look_up`, `refuse` or `refund`.
  call            text not null check (call in ('charge', 'look_up', 'refuse', 'refund')),
  refund_id       uuid,
  -- What the provider answered: `succeeded`, `failed`, `unknown` and the like.
  outcome         text not null,
  duration_ms     int not null
);
create index order_log_by_order on order_log (organization_id, order_id, at);
