-- breaking: no
--
-- Payments that are due, by the day on which the present period of an active subscription or a trial ends. Key is `renewal` or `trial`, or
-- the product.
create table figures_renewals (
  project_id text collate "C" not null,
  split      text collate "C" not null,
  day        date not null,
  test       boolean not null,
  key        text collate "C" not null,
  subkey     text collate "C" not null,
  currency   text collate "C" not null,
  subscriptions bigint not null,
  gross      numeric not null,
  gross_usd  numeric not null,
  without_usd bigint not null,
  primary key (project_id, split, day, test, key, subkey, currency)
);

-- The subscriptions of which a payment is due on a day.
create index subscriptions_due on subscriptions (project_id, period_ends_at) where status in ('active', 'trialing') and renews;

insert into figure_marks (project_id, family, day)
select distinct project_id, 'renewals', (period_ends_at at time zone 'UTC')::date from subscriptions
where status in ('active', 'trialing') and renews and period_ends_at is not null and isfinite(period_ends_at);
