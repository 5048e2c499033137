-- breaking: no
--
-- When an account was marked to be listed. Calls that were under way then may reach the provider's list minutes later.
alter table unlisted_accounts add column marked_at timestamptz not null default db_clock();
