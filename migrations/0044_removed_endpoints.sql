-- breaking: no
--
-- A removed endpoint may have millions of deliveries. Its row stays, disabled and shown nowhere, until background work has deleted
-- them in small batches.
alter table webhook_endpoints
  add column removed_at timestamptz,
  add check (removed_at is null or not enabled);
create index webhook_endpoints_removed on webhook_endpoints (removed_at) where removed_at is not null;
