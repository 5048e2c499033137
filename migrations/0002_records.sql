-- breaking: no
--
-- The records of the data API, and the counters of its lists.
--
-- source_updated_at is the time that the source gave a record: what later lines about it are compared with. updated_at cannot
-- serve for that: a live import stamps it with the database's clock, which is ahead of the source's next change by as long as
-- the feed takes, and that change would be taken for an older one. Null: the last line gave no time, its stamp counts.
--
-- Each list has an index for each order (creation, update), and for each filter with either order: without the latter a page of
-- a rare value passes over every row of the window.

create table funnels (
  project_id        text collate "C" not null references projects (id),
  id                text collate "C" not null,
  title             text not null,
  title_folded      text collate "C" not null,
  alias             text,
  type              text not null default 'default',
  status            text not null default 'draft' check (status in ('draft', 'published', 'archived')),
  environment       text not null default 'production',
  version           int not null default 1,
  variation_count   int not null default 1,
  tags              json not null default '[]',
  created_at        timestamptz not null,
  updated_at        timestamptz not null,
  last_published_at timestamptz,
  deleted_at        timestamptz,
  source_updated_at timestamptz,
  primary key (project_id, id)
);
create index funnels_by_creation on funnels (project_id, created_at, id);
create index funnels_by_update on funnels (project_id, updated_at, id);
create index funnels_by_alias on funnels (project_id, alias, created_at, id) where alias is not null;

create table experiments (
  project_id        text collate "C" not null references projects (id),
  id                text collate "C" not null,
  title             text,
  alias             text,
  enabled           boolean not null default false,
  created_at        timestamptz not null,
  updated_at        timestamptz not null,
  source_updated_at timestamptz,
  primary key (project_id, id)
);
create index experiments_by_creation on experiments (project_id, created_at, id);
create index experiments_by_update on experiments (project_id, updated_at, id);

create table profiles (
  project_id        text collate "C" not null references projects (id),
  id                text collate "C" not null,
  created_at        timestamptz not null,
  updated_at        timestamptz not null,
  email             text,
  email_folded      text collate "C",
  phone             text,
  password_hash     text,
  country           text,
  locale            text,
  funnel_id         text collate "C",
  preview           boolean not null default false,
  integrations      json not null default '{}',
  anonymized_at     timestamptz,
  source_updated_at timestamptz,
  -- Whether the person had given an e-mail address when it was erased: a figure must not fall because somebody was erased.
  email_erased      boolean not null default false,
  primary key (project_id, id),
  foreign key (project_id, funnel_id) references funnels (project_id, id),
  -- An erased person stays erased, however it is written.
  check (anonymized_at is null or
         (email is null and email_folded is null and phone is null and password_hash is null and integrations::text = '{}'))
);
create index profiles_by_creation on profiles (project_id, created_at, id);
create index profiles_by_update on profiles (project_id, updated_at, id);
create index profiles_by_email on profiles (project_id, email_folded) where email_folded is not null;
create index profiles_by_funnel on profiles (project_id, funnel_id, created_at, id) where funnel_id is not null;
create index profiles_by_funnel_update on profiles (project_id, funnel_id, updated_at, id) where funnel_id is not null;

create table sessions (
  project_id        text collate "C" not null references projects (id),
  id                text collate "C" not null,
  created_at        timestamptz not null,
  updated_at        timestamptz not null,
  profile_id        text collate "C" not null,
  funnel_id         text collate "C",
  funnel_version    int,
  experiment_id     text collate "C",
  locale            text,
  origin            text,
  user_agent        text,
  query_params      json not null default '{}',
  ip                text,
  country           text,
  region_code       text,
  city              text,
  postal_code       text,
  timezone          text,
  locale_code       text,
  tracking_cookies  json not null default '{}',
  source_updated_at timestamptz,
  primary key (project_id, id),
  foreign key (project_id, profile_id) references profiles (project_id, id),
  foreign key (project_id, funnel_id) references funnels (project_id, id),
  foreign key (project_id, experiment_id) references experiments (project_id, id)
);
create index sessions_by_creation on sessions (project_id, created_at, id);
create index sessions_by_update on sessions (project_id, updated_at, id);
create index sessions_by_profile on sessions (project_id, profile_id, created_at, id);
create index sessions_by_funnel on sessions (project_id, funnel_id, created_at, id) where funnel_id is not null;
create index sessions_by_funnel_update on sessions (project_id, funnel_id, updated_at, id) where funnel_id is not null;

create table replies (
  project_id        text collate "C" not null,
  session_id        text collate "C" not null,
  screen_id         text collate "C" not null,
  element_id        text collate "C" not null,
  screen_index      int not null,
  screen_custom_id  text,
  element_type      text not null,
  element_custom_id text,
  value             json not null default 'null',
  primary key (project_id, session_id, screen_id, element_id),
  foreign key (project_id, session_id) references sessions (project_id, id)
);

create table products (
  project_id           text collate "C" not null references projects (id),
  id                   text collate "C" not null,
  name                 text not null,
  status               text not null check (status in ('active', 'archived')),
  platform             text,
  external_id          text,
  description          text,
  statement_descriptor text,
  entitlement          text,
  metadata             json not null default '{}',
  -- Written by the import in the order and form of the API's responses, so that reading is copying.
  prices               json not null default '[]',
  created_at           timestamptz not null,
  updated_at           timestamptz not null,
  source_updated_at    timestamptz,
  primary key (project_id, id)
);
create index products_by_creation on products (project_id, created_at, id);
create index products_by_update on products (project_id, updated_at, id);

create table subscriptions (
  project_id             text collate "C" not null references projects (id),
  id                     text collate "C" not null,
  psp_id                 text,
  status                 text not null check
    (status in ('created', 'trialing', 'active', 'paused', 'cancelled', 'expired', 'unpaid')),
  renews                 boolean not null,
  sandbox                boolean not null default false,
  created_at             timestamptz not null,
  updated_at             timestamptz not null,
  billing_interval       text not null check (billing_interval in ('day', 'week', 'month', 'year')),
  billing_interval_count int not null,
  price                  bigint not null,
  currency               text not null,
  price_usd              bigint,
  funnel_version         int,
  payment_provider       text,
  period_starts_at       timestamptz,
  period_ends_at         timestamptz,
  profile_id             text collate "C" not null,
  product_id             text collate "C" not null,
  funnel_id              text collate "C",
  session_id             text collate "C",
  experiment_id          text collate "C",
  funnel_locale          text,
  trial_offer            json,
  trial_transaction_id   text collate "C",
  paused_at              timestamptz,
  cancelled_at           timestamptz,
  cancellation_reason    text,
  renewed_at             timestamptz,
  upgrades_to            text collate "C",
  custom_entitlement     text,
  source_updated_at      timestamptz,
  -- What the price does not include, such as metered usage.
  price_note             text,
  primary key (project_id, id),
  foreign key (project_id, profile_id) references profiles (project_id, id),
  foreign key (project_id, product_id) references products (project_id, id),
  foreign key (project_id, funnel_id) references funnels (project_id, id),
  foreign key (project_id, session_id) references sessions (project_id, id),
  foreign key (project_id, experiment_id) references experiments (project_id, id)
);
create index subscriptions_by_creation on subscriptions (project_id, created_at, id);
create index subscriptions_by_update on subscriptions (project_id, updated_at, id);
create index subscriptions_by_status on subscriptions (project_id, status, created_at, id);
create index subscriptions_by_status_update on subscriptions (project_id, status, updated_at, id);
create index subscriptions_by_profile on subscriptions (project_id, profile_id, created_at, id);
create index subscriptions_by_product on subscriptions (project_id, product_id, created_at, id);
create index subscriptions_by_product_update on subscriptions (project_id, product_id, updated_at, id);
create index subscriptions_by_funnel on subscriptions (project_id, funnel_id, created_at, id) where funnel_id is not null;
create index subscriptions_by_funnel_update on subscriptions (project_id, funnel_id, updated_at, id)
  where funnel_id is not null;
create index subscriptions_by_provider on subscriptions (project_id, payment_provider, created_at, id)
  where payment_provider is not null;
create index subscriptions_by_provider_update on subscriptions (project_id, payment_provider, updated_at, id)
  where payment_provider is not null;
-- An erasure looks for the subscriptions that show the user agent of its sessions, also under another profile.
create index subscriptions_by_session on subscriptions (project_id, session_id) where session_id is not null;
-- Cancelled subscriptions by the end of their period: the background work that makes them expired reads the first of each project.
create index subscriptions_to_expire on subscriptions (project_id, period_ends_at) where status = 'cancelled';

create table transactions (
  project_id        text collate "C" not null references projects (id),
  id                text collate "C" not null,
  created_at        timestamptz not null,
  updated_at        timestamptz not null,
  session_id        text collate "C",
  profile_id        text collate "C" not null,
  funnel_id         text collate "C",
  funnel_version    int,
  currency          text not null,
  price             bigint not null,
  price_usd         bigint,
  sandbox           boolean not null default false,
  funnel_locale     text,
  experiment_id     text collate "C",
  subscription_id   text collate "C",
  source_updated_at timestamptz,
  primary key (project_id, id),
  foreign key (project_id, profile_id) references profiles (project_id, id),
  foreign key (project_id, session_id) references sessions (project_id, id),
  foreign key (project_id, funnel_id) references funnels (project_id, id),
  foreign key (project_id, experiment_id) references experiments (project_id, id),
  foreign key (project_id, subscription_id) references subscriptions (project_id, id)
);
create index transactions_by_creation on transactions (project_id, created_at, id);
create index transactions_by_update on transactions (project_id, updated_at, id);
create index transactions_by_subscription on transactions (project_id, subscription_id, created_at, id)
  where subscription_id is not null;
-- A person's transactions: their first of a month, and all of them on the person's page.
create index transactions_by_profile on transactions (project_id, profile_id, created_at, id);
create index transactions_by_session on transactions (project_id, session_id) where session_id is not null;

-- Statements are planned once for all tenants, by what one has on the average. Among a thousand small projects a large
-- one would then be sorted as if it were small: planned as if each held the whole table, pages come from an index in
-- its order, which is right for the small ones too. Holds from the next ANALYZE on.
alter table funnels       alter column project_id set (n_distinct = 1);
alter table experiments   alter column project_id set (n_distinct = 1);
alter table products      alter column project_id set (n_distinct = 1);
alter table profiles      alter column project_id set (n_distinct = 1);
alter table sessions      alter column project_id set (n_distinct = 1);
alter table subscriptions alter column project_id set (n_distinct = 1);
alter table transactions  alter column project_id set (n_distinct = 1);

-- How many rows a list has, in all (field '') and by one filter. Writers append small deltas, so that they never wait for
-- each other; a sweep adds the deltas up; a total is the sum of the rows of its key.
create table counts (
  project_id text collate "C" not null references projects (id),
  list       text collate "C" not null,
  field      text collate "C" not null,
  value      text collate "C" not null,
  n          bigint not null,
  -- A delta that the sweep has not added up yet. It reads these alone: with a thousand projects there are a hundred thousand
  -- counters, and reading all of them each second would keep a core busy for nothing.
  fresh      boolean not null default true
);
create index counts_by_key on counts (project_id, list, field, value) include (n);
create index counts_fresh on counts (project_id, list, field, value) where fresh;

-- What records name that is not there yet: Stripe's metadata may name a session that arrives after its payment. A row is deleted
-- when it is linked. `record` is `profile` for a profile that is to be merged into the one that it names, or into that of a session.
create table waiting_links (
  project_id text collate "C" not null references projects (id),
  record     text collate "C" not null check (record in ('profile', 'subscription', 'transaction')),
  id         text collate "C" not null,
  field      text collate "C" not null check (field in ('profile_id', 'session_id', 'funnel_id', 'experiment_id')),
  named      text collate "C" not null,
  created_at timestamptz not null,
  primary key (project_id, record, id, field)
);
create index waiting_links_by_name on waiting_links (project_id, field, named);
