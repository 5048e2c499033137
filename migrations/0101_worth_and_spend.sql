-- breaking: no
--
-- What people are worth: money by the day on which it moved, and by when the person came first ('session') or paid first ('payment').
-- `cohort` is that day, as long as it was at most 180 days ago; otherwise the first day of that part of its week which is in its month,
-- so that rows stay few. `age` is the number of days since, 181 for more than 180; `months` the number of whole months since.
create table figures_worth (
  project_id text collate "C" not null,
  split      text collate "C" not null,
  day        date not null,
  test       boolean not null,
  key        text collate "C" not null,
  subkey     text collate "C" not null,
  currency   text collate "C" not null,
  base       text collate "C" not null,
  cohort     date not null,
  age        int not null,
  months     int not null,
  sales      bigint not null,
  customers  bigint not null,
  gross      numeric not null,
  net        numeric not null,
  gross_usd  numeric not null,
  net_usd    numeric not null,
  without_usd bigint not null,
  primary key (project_id, split, day, test, key, subkey, currency, base, cohort, age, months)
);
create index figures_worth_by_cohort on figures_worth (project_id, split, base, cohort);

-- What was paid for advertising, as it was loaded: a load replaces the rows of its days and sources.
create table spend (
  project_id    text collate "C" not null references projects (id),
  day           date not null,
  source        text collate "C" not null,
  campaign      text collate "C" not null,
  currency_code text collate "C" not null,
  amount        numeric not null check (amount >= 0),
  -- By the organization's exchange rate of the day when it was loaded; null without one.
  amount_usd    numeric,
  primary key (project_id, day, source, campaign, currency_code)
);

-- The same by funnel: divided by how many people came for the first time on the day from this source and campaign to each funnel.
create table figures_spend (
  project_id text collate "C" not null,
  split      text collate "C" not null,
  day        date not null,
  test       boolean not null,
  key        text collate "C" not null,
  subkey     text collate "C" not null,
  currency   text collate "C" not null,
  spent      numeric not null,
  spent_usd  numeric not null,
  without_usd bigint not null,
  primary key (project_id, split, day, test, key, subkey, currency)
);
