-- breaking: no
--
-- Cancelled subscriptions by the end of their period: the background work that makes them expired looks at the first of each
-- project.
create index subscriptions_to_expire on subscriptions (project_id, period_ends_at) where status = 'cancelled';
