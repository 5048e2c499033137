-- breaking: no
--
-- Exchange rates that were loaded for all organizations. Each organization has them in its own rows, by which amounts are
-- converted; one that is created later gets them from here. The rates loaded before this are not in it, for some may have
-- been loaded for one organization only.
create table shared_exchange_rates (
  currency_code text collate "C" not null check (currency_code ~ '^[A-Z]{3}$'),
  day           date not null,
  per_euro      numeric not null check (per_euro > 0),
  primary key (currency_code, day)
);
