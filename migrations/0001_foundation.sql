-- breaking: no
--
-- The foundation: tenants and their keys, the records of the data API, the records of billing, the outbox.
--
-- Rules that hold for every table below:
--   * The tenant (project_id, or organization_id in billing) leads every primary key, unique rule, foreign key and index,
--     so that a table can be distributed or partitioned by tenant without a rewrite. The exceptions say why.
--   * No triggers on tenant tables: the few statements that write them stamp and count themselves.
--   * Times are timestamptz and come from db_clock(); ids are text in the "C" collation, so that they sort by byte.
--   * A rule that matters is a constraint.

-- The database's clock. Everything that Tundish stamps is stamped with this, never with a program's clock.
-- The setting exists for tests alone: it moves the clock of one session.
create function db_clock() returns timestamptz language sql volatile as
$$ select clock_timestamp() + coalesce(nullif(current_setting('tundish.clock_offset', true), ''), '0')::interval $$;

-- Facts about this installation as a whole: the master key's fingerprint, the simulator's address.
create table instance (
  name  text primary key,
  value text not null
);

------------------------------------------------------------------------------------------------ tenants

create table organizations (
  id         text collate "C" primary key check (id ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$'),
  name       text not null,
  created_at timestamptz not null default db_clock(),
  one_off_charge_enabled    boolean not null default false,
  -- Major units by currency code; '*' holds for every currency that has no entry of its own.
  one_off_charge_max_amount jsonb not null default '{"*": "1000"}'
);

create table projects (
  id              text collate "C" primary key check (id ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$'),
  organization_id text collate "C" not null references organizations (id),
  name            text not null,
  created_at      timestamptz not null default db_clock(),
  -- The project's number in advisory locks, which take integers only.
  number          int not null generated always as identity unique,
  unique (organization_id, id)
);

-- One row a project: what a sync has been promised.
--   horizon: the last promise. Every change stamped before it is visible.
--   floor:   no transaction that begins to write after this was stored stamps anything earlier. Never below horizon.
-- Both only grow, so that a clock set back cannot break a promise.
create table project_clocks (
  project_id text collate "C" primary key references projects (id),
  floor      timestamptz not null default '-infinity',
  horizon    timestamptz not null default '-infinity',
  check (floor >= horizon)
) with (fillfactor = 50);

-- Class of the advisory locks that writers of a project's records hold, shared, to the end of their transaction.
create function write_lock_class() returns int language sql immutable as $$ select 7483 $$;

-- Begins a write to a project's records: takes the project's lock, then reads the floor in a later statement, and
-- returns the least stamp this transaction may use. now() is in it because the horizon trusts a writer's xact_start.
create function begin_write(project text) returns timestamptz language plpgsql volatile as $$
declare
  base timestamptz;
  lock_number int;
begin
  select number into strict lock_number from projects where id = project;
  perform pg_advisory_xact_lock_shared(write_lock_class(), lock_number);
  select greatest(c.floor, db_clock(), now() + (db_clock() - clock_timestamp()))
    into strict base from project_clocks c where c.project_id = project;
  return base;
end $$;

-- What an erasure leaves of the address a session came to: scheme and host, without user or password.
create function origin_only(origin text) returns text language sql immutable as
$$ select case when origin ~ '^[A-Za-z][A-Za-z0-9+.-]*://' then
     regexp_replace(origin, '^([A-Za-z][A-Za-z0-9+.-]*://)([^/?#]*@)?([^/?#]*).*$', '\1\3') end $$;

-- Secret keys: of a project (data API, webhooks) or of an organization (billing API).
-- The hash finds a key; the sealed copy (AES-256-GCM under the master key) signs webhooks. The key itself is nowhere.
create table secret_keys (
  id              uuid primary key,
  organization_id text collate "C" not null references organizations (id),
  project_id      text collate "C",
  name            text not null default '',
  -- A key arrives alone, so that its hash is looked up without a tenant: the one index that no tenant leads.
  hash            bytea not null unique check (octet_length(hash) = 32),
  sealed          bytea not null,
  created_at      timestamptz not null default db_clock(),
  expires_at      timestamptz,
  foreign key (organization_id, project_id) references projects (organization_id, id)
);
create index secret_keys_by_owner on secret_keys (organization_id, project_id);

------------------------------------------------------------------------------------------------ records of the data API

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
  primary key (project_id, id)
);
create index funnels_by_creation on funnels (project_id, created_at, id);

create table experiments (
  project_id text collate "C" not null references projects (id),
  id         text collate "C" not null,
  title      text,
  alias      text,
  enabled    boolean not null default false,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (project_id, id)
);

create table profiles (
  project_id    text collate "C" not null references projects (id),
  id            text collate "C" not null,
  created_at    timestamptz not null,
  updated_at    timestamptz not null,
  email         text,
  email_folded  text collate "C",
  phone         text,
  password_hash text,
  country       text,
  locale        text,
  funnel_id     text collate "C",
  preview       boolean not null default false,
  integrations  json not null default '{}',
  anonymized_at timestamptz,
  primary key (project_id, id),
  foreign key (project_id, funnel_id) references funnels (project_id, id),
  -- An erased person stays erased, whoever writes.
  check (anonymized_at is null or
         (email is null and email_folded is null and phone is null and password_hash is null and integrations::text = '{}'))
);
create index profiles_by_creation on profiles (project_id, created_at, id);
create index profiles_by_update on profiles (project_id, updated_at, id);
create index profiles_by_email on profiles (project_id, email_folded) where email_folded is not null;
create index profiles_by_funnel on profiles (project_id, funnel_id, created_at, id) where funnel_id is not null;

create table sessions (
  project_id       text collate "C" not null references projects (id),
  id               text collate "C" not null,
  created_at       timestamptz not null,
  updated_at       timestamptz not null,
  profile_id       text collate "C" not null,
  funnel_id        text collate "C",
  funnel_version   int,
  experiment_id    text collate "C",
  locale           text,
  origin           text,
  user_agent       text,
  query_params     json not null default '{}',
  ip               text,
  country          text,
  region_code      text,
  city             text,
  postal_code      text,
  timezone         text,
  locale_code      text,
  tracking_cookies json not null default '{}',
  primary key (project_id, id),
  foreign key (project_id, profile_id) references profiles (project_id, id),
  foreign key (project_id, funnel_id) references funnels (project_id, id),
  foreign key (project_id, experiment_id) references experiments (project_id, id)
);
create index sessions_by_creation on sessions (project_id, created_at, id);
create index sessions_by_update on sessions (project_id, updated_at, id);
create index sessions_by_profile on sessions (project_id, profile_id, created_at, id);
create index sessions_by_funnel on sessions (project_id, funnel_id, created_at, id) where funnel_id is not null;

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
  -- Written by the import in the order and form the API answers, so that reading is copying.
  prices               json not null default '[]',
  created_at           timestamptz not null,
  updated_at           timestamptz not null,
  primary key (project_id, id)
);
create index products_by_creation on products (project_id, created_at, id);

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
create index subscriptions_by_profile on subscriptions (project_id, profile_id, created_at, id);
create index subscriptions_by_product on subscriptions (project_id, product_id, created_at, id);
create index subscriptions_by_funnel on subscriptions (project_id, funnel_id, created_at, id) where funnel_id is not null;
create index subscriptions_by_provider on subscriptions (project_id, payment_provider, created_at, id)
  where payment_provider is not null;

create table transactions (
  project_id      text collate "C" not null references projects (id),
  id              text collate "C" not null,
  created_at      timestamptz not null,
  updated_at      timestamptz not null,
  session_id      text collate "C",
  profile_id      text collate "C" not null,
  funnel_id       text collate "C",
  funnel_version  int,
  currency        text not null,
  price           bigint not null,
  price_usd       bigint,
  sandbox         boolean not null default false,
  funnel_locale   text,
  experiment_id   text collate "C",
  subscription_id text collate "C",
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

-- How many rows a list has, in all (field '') and by one filter. Writers append small deltas, so that they never wait for
-- each other; a sweep adds the deltas up; a total is the sum of the rows of its key.
create table counts (
  project_id text collate "C" not null references projects (id),
  list       text collate "C" not null,
  field      text collate "C" not null,
  value      text collate "C" not null,
  n          bigint not null
);
create index counts_by_key on counts (project_id, list, field, value) include (n);

-- Everybody who was ever erased, without anything personal. Rows are added, never changed: a restored backup brings the
-- old table back, which is why the same lines stand in a file too.
create table erasures (
  project_id text collate "C" not null references projects (id),
  profile_id text collate "C" not null,
  erased_at  timestamptz not null default db_clock(),
  primary key (project_id, profile_id)
);

------------------------------------------------------------------------------------------------ records of billing

create table customers (
  organization_id text collate "C" not null references organizations (id),
  external_id     text collate "C" not null check (char_length(external_id) between 1 and 256),
  project_id      text collate "C" not null,
  email           text,
  profile_id      text collate "C",
  created_at      timestamptz not null,
  updated_at      timestamptz not null,
  primary key (organization_id, external_id),
  foreign key (organization_id, project_id) references projects (organization_id, id),
  foreign key (project_id, profile_id) references profiles (project_id, id)
);
create index customers_by_profile on customers (project_id, profile_id) where profile_id is not null;

create table merchant_accounts (
  organization_id text collate "C" not null references organizations (id),
  psp             text collate "C" not null,
  psp_merchant_id text collate "C" not null,
  region          text,
  -- Upper-case codes; an empty list offers every currency.
  currencies      json not null default '[]',
  created_at      timestamptz not null,
  updated_at      timestamptz not null,
  primary key (organization_id, psp, psp_merchant_id)
);

-- The payment report: one row for each movement of money whose outcome is known. Rows are added, never changed by us.
create table report_transactions (
  organization_id text collate "C" not null,
  external_id     text collate "C" not null,
  -- Brought by an import (true) or written by Tundish when it settled (false): an import never touches the latter.
  imported        boolean not null,
  updated_at      timestamptz not null,
  order_id        uuid not null,
  trx_id          uuid not null,
  trx_created_at  timestamptz not null,
  amount          numeric not null,
  amount_usd      numeric,
  currency_code   text not null,
  status          text not null,
  integration_type text, region text, psp text not null,
  pp_id int, pp_version int,
  is_cit boolean not null default false, is_fallback boolean not null default false,
  threeds_challenge_issued boolean not null default false, is_vaulted boolean not null default false,
  pm_data_is_network_tokenized boolean not null default false,
  psp_date timestamptz,
  psp_transaction_id text, psp_merchant_id text collate "C", psp_transaction_type text not null, psp_status text,
  psp_card_token_type text, psp_reason_message text, psp_reason_type text, psp_reason_code text,
  psp_reason_decline_type text,
  meta_subs_id text, meta_subs_iteration text, meta_retry_step text, meta_oneoff_id text,
  meta_client_svc_project_id text, meta_client_svc_session_id text, meta_client_svc_price_id text,
  pm_type text, threeds_protocol_version text, threeds_response_code text, threeds_reason_code text,
  threeds_reason_text text, authorization_type text, network text,
  pm_data_bin_account_funding_type text, pm_data_bin_account_number_type text, pm_data_bin_issuer_name text,
  pm_data_bin_issuer_country_code text, pm_data_bin_issuer_currency_code text,
  pm_data_bin_prepaid_reloadable_indicator text, pm_data_bin_product_code text, pm_data_bin_product_name text,
  pm_data_bin_product_usage_type text, pm_data_bin_regional_restriction text,
  pm_data_expiration_date text, pm_data_first6 text check (pm_data_first6 ~ '^[0-9]{6}$'),
  pm_data_last4 text check (pm_data_last4 ~ '^[0-9]{4}$'),
  -- The provider's token of the saved card; null = the card was not saved. Never shown.
  payment_method_token text,
  primary key (organization_id, trx_id),
  -- The walk of the report rests on this: no two rows of an organization share an instant.
  unique (organization_id, trx_created_at),
  foreign key (organization_id, external_id) references customers (organization_id, external_id)
);
create index report_transactions_by_order on report_transactions (organization_id, order_id, trx_created_at);
create index report_transactions_by_subscription on report_transactions (organization_id, meta_subs_id, trx_created_at)
  where meta_subs_id is not null;
create index report_transactions_by_oneoff on report_transactions (organization_id, meta_oneoff_id, trx_created_at)
  where meta_oneoff_id is not null;
-- Finds the saved card: the customer's latest successful payments.
create index report_transactions_by_customer on report_transactions (organization_id, external_id, trx_created_at)
  where psp_transaction_type = 'sale' and status = 'succeeded';

-- The instant of the last report row, locked to the commit by whoever adds one: report stamps follow commit order.
create table organization_clocks (
  organization_id     text collate "C" primary key references organizations (id),
  last_trx_created_at timestamptz not null default '-infinity'
) with (fillfactor = 50);

-- Orders: one row a custom charge, from the claim on. While processing it is its own entry in the queue of things to settle.
create table orders (
  organization_id text collate "C" not null references organizations (id),
  order_id        uuid not null,
  external_id     text collate "C" not null,
  project_id      text collate "C" not null,
  idempotency_key text collate "C" not null check (char_length(idempotency_key) between 1 and 128),
  -- Major units with all decimals of the currency.
  amount          numeric not null check (amount > 0),
  currency_code   text not null check (currency_code ~ '^[A-Z]{3}$'),
  client_metadata json,
  status          text not null default 'processing' check (status in ('processing', 'succeeded', 'failed', 'cancelled')),
  failed_message_for_user text not null default '',
  -- Where the money is taken: copied from the payment whose card is charged.
  psp             text not null,
  psp_merchant_id text collate "C",
  region          text,
  payment_method_token text not null,
  source_trx_id   uuid not null,
  -- What the provider knows this charge by: SHA-256 of organization, external_id and idempotency_key, in hex.
  provider_key    text collate "C" not null,
  created_at      timestamptz not null,
  settled_at      timestamptz,
  -- Until then the claiming process is still making the charge itself, and nobody else may settle it.
  lease_until     timestamptz,
  next_look_at    timestamptz,
  looks           int not null default 0,
  -- The sum of succeeded refunds, and of those that are not soft.
  amount_refunded      numeric not null default 0,
  amount_refunded_hard numeric not null default 0,
  primary key (organization_id, order_id),
  -- At most one provider charge for each (customer, key), for ever.
  unique (organization_id, external_id, idempotency_key),
  foreign key (organization_id, external_id) references customers (organization_id, external_id),
  foreign key (organization_id, project_id) references projects (organization_id, id),
  check ((status = 'processing') = (settled_at is null)),
  check (status <> 'processing' or next_look_at is not null),
  check (amount_refunded <= amount and amount_refunded_hard <= amount_refunded)
);
-- One charge in progress a customer.
create unique index orders_in_progress on orders (organization_id, external_id) where status = 'processing';
-- The queue is one for all tenants: whoever is due, is next.
create index orders_due on orders (next_look_at) where status = 'processing';

create table refunds (
  organization_id text collate "C" not null,
  refund_id       uuid not null,
  order_id        uuid not null,
  external_id     text collate "C" not null,
  idempotency_key text collate "C",
  amount          numeric not null check (amount > 0),
  currency_code   text not null,
  soft_refund     boolean not null default false,
  reason          text not null default '',
  comment         text not null default '',
  status          text not null default 'processing' check (status in ('processing', 'succeeded', 'failed')),
  provider_key    text collate "C" not null,
  created_at      timestamptz not null,
  settled_at      timestamptz,
  lease_until     timestamptz,
  next_look_at    timestamptz,
  looks           int not null default 0,
  primary key (organization_id, refund_id),
  unique (organization_id, external_id, idempotency_key),
  foreign key (organization_id, order_id) references orders (organization_id, order_id),
  check ((status = 'processing') = (settled_at is null)),
  check (status <> 'processing' or next_look_at is not null)
);
-- One refund in progress an order.
create unique index refunds_in_progress on refunds (organization_id, order_id) where status = 'processing';
create index refunds_by_order on refunds (organization_id, order_id, created_at);
create index refunds_due on refunds (next_look_at) where status = 'processing';

create table consumables (
  organization_id text collate "C" not null,
  consumable_id   uuid not null,
  order_id        uuid not null,
  external_id     text collate "C" not null,
  amount          numeric not null,
  currency_code   text not null,
  is_active       boolean not null default true,
  granted_at      timestamptz not null,
  revoked_at      timestamptz,
  primary key (organization_id, consumable_id),
  -- Exactly one consumable a successful charge.
  unique (organization_id, order_id),
  foreign key (organization_id, order_id) references orders (organization_id, order_id),
  check (is_active = (revoked_at is null))
);
create index consumables_by_customer on consumables (organization_id, external_id, granted_at);

------------------------------------------------------------------------------------------------ events

-- The outbox: an event is written in the transaction that changed its object.
create table events (
  project_id  text collate "C" not null references projects (id),
  id          uuid not null,
  type        text not null,
  object_id   text collate "C" not null,
  -- Grows by one with each event of the same object.
  sequence    bigint not null,
  created_at  timestamptz not null,
  -- Whose personal data the payload may hold, for erasure.
  profile_id  text collate "C",
  data        json not null,
  primary key (project_id, id),
  unique (project_id, object_id, sequence)
);
create index events_by_profile on events (project_id, profile_id) where profile_id is not null;
