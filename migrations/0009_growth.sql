-- breaking: no
--
-- What lists need at ten million rows.

-- One filter together with a window of changes, in the order of the changes: without these a page of a rare value passes
-- over every row of the window.
create index subscriptions_by_status_update on subscriptions (project_id, status, updated_at, id);
create index subscriptions_by_product_update on subscriptions (project_id, product_id, updated_at, id);
create index subscriptions_by_funnel_update on subscriptions (project_id, funnel_id, updated_at, id)
  where funnel_id is not null;
create index subscriptions_by_provider_update on subscriptions (project_id, payment_provider, updated_at, id)
  where payment_provider is not null;
create index profiles_by_funnel_update on profiles (project_id, funnel_id, updated_at, id) where funnel_id is not null;
create index sessions_by_funnel_update on sessions (project_id, funnel_id, updated_at, id) where funnel_id is not null;

create index funnels_by_alias on funnels (project_id, alias, created_at, id) where alias is not null;

-- Statements are planned once for all tenants, by what one has on the average. Among a thousand small projects a large
-- one would then be sorted as if it were small: planned as if each held the whole table, pages come from an index in
-- its order, which is right for the small ones too. Holds from the next ANALYZE on.
alter table funnels             alter column project_id set (n_distinct = 1);
alter table products            alter column project_id set (n_distinct = 1);
alter table profiles            alter column project_id set (n_distinct = 1);
alter table sessions            alter column project_id set (n_distinct = 1);
alter table subscriptions       alter column project_id set (n_distinct = 1);
alter table transactions        alter column project_id set (n_distinct = 1);
alter table report_transactions alter column organization_id set (n_distinct = 1);
