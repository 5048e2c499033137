-- breaking: no
--
-- What billing needs beyond the foundation.

-- Exchange rates in the form of the European Central Bank's tables: units of a currency for one euro. The euro itself
-- stands in it with 1, so that every conversion is the same join.
create table exchange_rates (
  organization_id text collate "C" not null references organizations (id),
  currency_code   text collate "C" not null check (currency_code ~ '^[A-Z]{3}$'),
  day             date not null,
  per_euro        numeric not null check (per_euro > 0),
  primary key (organization_id, currency_code, day)
);

-- Whether the request named an amount: a key used again without one is not the same request.
alter table refunds add column amount_given boolean not null default true;

-- Why an operator ended it by hand, when no provider could ever tell.
alter table orders add column resolved_because text;

-- A provider lists movements of money by key alone, for all tenants: reconciling looks them up here.
create index orders_by_provider_key on orders (provider_key);
create index refunds_by_provider_key on refunds (provider_key);
