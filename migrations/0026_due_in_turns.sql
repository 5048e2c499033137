-- breaking: no
--
-- Due looks at charges and refunds are taken in turns among organizations, and survive a database clock that is set back.

alter table orders add column handed_over_at timestamptz;
alter table refunds add column handed_over_at timestamptz;
-- When the time of the next attempt was set.
alter table webhook_deliveries add column scheduled_at timestamptz;

drop index orders_due;
create index orders_due on orders (organization_id, next_look_at) where status = 'processing';
drop index refunds_due;
create index refunds_due on refunds (organization_id, next_look_at) where status = 'processing';
