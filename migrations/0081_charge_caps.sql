-- breaking: no
--
-- Caps of custom charges, besides the maximum of one charge: how many a customer or the organization may make in a calendar day, week or
-- month of UTC, and how much money they may be in a currency. A loop of charges ends there.
create table charge_caps (
  organization_id text collate "C" not null references organizations (id),
  -- Of each customer, or of the organization as a whole.
  scope           text collate "C" not null check (scope in ('customer', 'organization')),
  per             text collate "C" not null check (per in ('day', 'week', 'month')),
  -- Of the money; '' counts charges.
  currency_code   text collate "C" not null check (currency_code ~ '^([A-Z]{3})?$'),
  most            numeric not null check (most >= 0),
  created_at      timestamptz not null,
  primary key (organization_id, scope, per, currency_code)
);

-- What was used of each cap since the beginning of its period. `external_id` is '' for the organization. Locked by each claim before it
-- reads them, so that concurrent claims on several processes cannot pass a cap together.
create table charge_counters (
  organization_id text collate "C" not null,
  external_id     text collate "C" not null,
  per             text collate "C" not null,
  currency_code   text collate "C" not null,
  since           timestamptz not null,
  used            numeric not null check (used >= 0),
  primary key (organization_id, external_id, per, currency_code)
) with (fillfactor = 70);

-- Whether the order was counted: money that was not taken is given back to the counters.
alter table orders add column is_counted boolean not null default false;
