-- breaking: no
--
-- Figures: what an owner asks of a project, summed up by day, so that no page scans the records. docs/figures.md defines
-- each figure; src/data/figures computes them from the records and can rebuild all of them.
--
-- A day is a day in UTC. A family is a set of figures that are computed together. Each row of a family is one day, split
-- by nothing (split '') or by the one or two dimensions that `split` names; key and subkey hold their values, '' where
-- the record has none. Money is in minor units; test = true is sandbox and preview data, which is left out unless asked for.
-- The tables of figures do not refer to projects: rows are written by the thousand, and each reference would lock the project.

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

-- How many sessions of a funnel replied on each screen, and for how many of them it was the last reply.
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

-- Days whose figures could not be computed: the other days of the project go on, and these are tried again later. The figures
-- of such a day are what they were before.
create table figure_failures (
  project_id      text collate "C" not null references projects (id),
  family          text collate "C" not null,
  day             date not null,
  -- The SQLSTATE: a message may quote a row.
  code            text collate "C" not null,
  failed_at       timestamptz not null,
  next_attempt_at timestamptz not null,
  primary key (project_id, family, day)
);

-- How far the figures have followed the project: the horizon of its transactions, and the end of what is known from the records
-- themselves.
create table figure_progress (
  project_id text collate "C" primary key references projects (id),
  horizon    timestamptz not null,
  -- Not read: figure_reports has it, by organization.
  reported   timestamptz not null default '-infinity',
  updated_at timestamptz not null default db_clock()
);

-- Charges and refunds are followed by organization: its clock shows the stamp of its last row of the report, so that one
-- comparison of two small tables finds everything that is new.
create table figure_reports (
  organization_id text collate "C" primary key references organizations (id),
  -- All rows of the report stamped until this instant have marked the days of their figures.
  reported    timestamptz not null,
  -- No transaction of a charge that was stamped before this instant has still to mark its days.
  followed_at timestamptz not null
) with (fillfactor = 50);

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
