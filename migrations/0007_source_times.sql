-- breaking: no
--
-- The time that the source gave a record: what later lines about it are compared with. updated_at cannot serve for that:
-- a live import stamps it with the database's clock, which is ahead of the source's next change by as long as the
-- feed takes, and that change would be taken for an older one. Null: the last line gave no time, its stamp counts.
alter table funnels       add column source_updated_at timestamptz;
alter table experiments   add column source_updated_at timestamptz;
alter table products      add column source_updated_at timestamptz;
alter table profiles      add column source_updated_at timestamptz;
alter table sessions      add column source_updated_at timestamptz;
alter table subscriptions add column source_updated_at timestamptz;
alter table transactions  add column source_updated_at timestamptz;
