-- breaking: no
--
-- Figures: what an owner asks of a project, summed up by day, so that no page scans the records. docs/figures.md defines
-- each figure; src/figures computes them from the records and can rebuild all of them.
--
-- A day is a day in UTC. A family is a set of figures that are computed together. Each row of a family is one day, split
-- by nothing (split '') or by the one or two dimensions that `split` names; key and subkey hold their values, '' where
-- the record has none. Money is in minor units; test = true is sandbox and preview data, which is left out unless asked for.
-- None of these tables refers to projects: rows are written by the thousand, and each reference would lock the project.

-- Whether the person had given an e-mail address when it was erased: a figure must not fall because somebody was erased.
alter table profiles add column email_erased boolean not null default false;

create table figures_visits (
  project_id text collate "C" not null,
  split      text collate "C" not null,
  day        date not null,
  test       boolean not null,
  key        text collate "C" not null,
  subkey     text collate "C" not null,
  sessions   bigint not null,
  people     bigint not null,
  replied    bigint not null,
  emailed    bigint not null,
  subscribed bigint not null,
  paid       bigint not null,
  primary key (project_id, split, day, test, key, subkey)
);

-- How many sessions of a funnel answered on each screen, and on how many of them it was the last answer.
create table figures_screens (
  project_id text collate "C" not null,
  split      text collate "C" not null,
  day        date not null,
  test       boolean not null,
  key        text collate "C" not null,
  subkey     text collate "C" not null,
  answered   bigint not null,
  stopped    bigint not null,
  primary key (project_id, split, day, test, key, subkey)
);

create table figures_sales (
  project_id  text collate "C" not null,
  split       text collate "C" not null,
  day         date not null,
  test        boolean not null,
  key         text collate "C" not null,
  subkey      text collate "C" not null,
  currency    text collate "C" not null,
  sales       bigint not null,
  gross       numeric not null,
  refunds     bigint not null,
  refunded    numeric not null,
  chargebacks bigint not null,
  charged_back numeric not null,
  payers      bigint not null,
  -- The same in US cents; movements whose value in US dollars is not known are left out there and counted in without_usd.
  gross_usd        numeric not null,
  refunded_usd     numeric not null,
  charged_back_usd numeric not null,
  without_usd      bigint not null,
  primary key (project_id, split, day, test, key, subkey, currency)
);

create table figures_payments (
  project_id text collate "C" not null,
  split      text collate "C" not null,
  day        date not null,
  test       boolean not null,
  key        text collate "C" not null,
  subkey     text collate "C" not null,
  attempts   bigint not null,
  accepted   bigint not null,
  declined   bigint not null,
  primary key (project_id, split, day, test, key, subkey)
);

create table figures_subscriptions (
  project_id text collate "C" not null,
  split      text collate "C" not null,
  day        date not null,
  test       boolean not null,
  key        text collate "C" not null,
  subkey     text collate "C" not null,
  currency   text collate "C" not null,
  started    bigint not null,
  trials     bigint not null,
  converted  bigint not null,
  began_paying bigint not null,
  ended      bigint not null,
  -- What a month of the subscriptions that began to pay, less those that ended, is worth.
  mrr        numeric not null,
  mrr_usd    numeric not null,
  primary key (project_id, split, day, test, key, subkey, currency)
);

-- Days whose figures have to be computed again. An import adds them in its own transaction, for only a writer knows the
-- day that a record leaves; rows are added and removed, never changed, so that writers do not wait for each other.
create table figure_marks (
  project_id text collate "C" not null,
  family     text collate "C" not null,
  day        date not null
);
create index figure_marks_by_project on figure_marks (project_id, family, day);

-- How far the figures have followed the project: the horizon of its transactions, the stamp of its organization's last
-- report row that was looked at, and the end of what is known from the records themselves.
create table figure_progress (
  project_id text collate "C" primary key references projects (id),
  horizon    timestamptz not null,
  reported   timestamptz not null,
  updated_at timestamptz not null default db_clock()
);

-- The instant a subscription stops paying, as its own fields tell it; null while it goes on.
create function subscription_end(
  status text, period_ends_at timestamptz, cancelled_at timestamptz, paused_at timestamptz, created_at timestamptz
) returns timestamptz language sql immutable as $$
  select case
    when status = 'paused' then coalesce(paused_at, period_ends_at, created_at)
    when status in ('cancelled', 'expired', 'unpaid') then coalesce(period_ends_at, cancelled_at, created_at)
  end $$;

-- The subscriptions that stop paying on a day.
create index subscriptions_by_end on subscriptions
  (project_id, subscription_end(status, period_ends_at, cancelled_at, paused_at, created_at))
  where status in ('paused', 'cancelled', 'expired', 'unpaid');

-- What a subscription is worth a month, in minor units: a year has 12 months of 30.4375 days.
create function monthly_worth(price bigint, billing_interval text, billing_interval_count int)
returns numeric language sql immutable as $$
  select round(price::numeric / nullif(billing_interval_count, 0) * case billing_interval
    when 'day' then 30.4375 when 'week' then 30.4375 / 7 when 'month' then 1 else 1.0 / 12 end, 4) $$;

-- A person's transactions: their first of a month, and all of them on the person's page.
create index transactions_by_profile on transactions (project_id, profile_id, created_at, id);

-- A customer's refunds and disputes; their sales have an index already.
create index report_transactions_by_customer_back on report_transactions (organization_id, external_id, trx_created_at)
  where psp_transaction_type <> 'sale';
