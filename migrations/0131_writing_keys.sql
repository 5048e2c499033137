-- breaking: no
--
-- When each secret key was last used, to the minute.
create table key_uses (
  organization_id text collate "C" not null references organizations (id),
  -- Null for a key of the organization.
  project_id      text collate "C",
  key_id          uuid not null,
  last_used_at    timestamptz not null,
  primary key (organization_id, key_id)
);

-- What each key writes through the data API. `code` is that of a reject, '' for records that were accepted; `record` is '' where a reject
-- names no kind.
create table record_writers (
  project_id   text collate "C" not null references projects (id),
  key_id       uuid not null,
  -- Of UTC.
  day          date not null,
  record       text collate "C" not null,
  code         text collate "C" not null,
  n            bigint not null,
  last_seen_at timestamptz not null,
  primary key (project_id, key_id, day, record, code)
) with (fillfactor = 70);

-- Whether keys that write may also write payments, customers and merchant accounts, which decide whose card is charged.
alter table projects add column write_payments boolean not null default false;
