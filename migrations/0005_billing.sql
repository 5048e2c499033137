-- breaking: no
--
-- Custom charges: merchant accounts, orders, refunds, disputes, consumables, and the caps of charges.

create table merchant_accounts (
  organization_id text collate "C" not null references organizations (id),
  psp             text collate "C" not null,
  psp_merchant_id text collate "C" not null,
  region          text,
  -- Upper-case codes; an empty list offers every currency.
  currencies      json not null default '[]',
  created_at      timestamptz not null,
  updated_at      timestamptz not null,
  -- Whether the account moves play money only. Null: it was never connected; the simulator's always does.
  is_sandbox      boolean,
  -- The provider's secret key, sealed under the master key. Null: not connected, its cards cannot be charged.
  credentials     bytea,
  -- The end of that key, by which people tell keys apart.
  credentials_last4 text,
  -- A JSON list of the secrets that sign the provider's notifications, sealed too; several while one is rotated.
  webhook_secrets bytea,
  connected_at    timestamptz,
  -- The last notification with a valid signature.
  notified_at     timestamptz,
  -- Notifications before this time were read from the provider's list of them, so that none that was lost is missed.
  notifications_read_until timestamptz,
  -- When they are read next, and until when a process is doing it.
  notifications_due_at timestamptz,
  notifications_lease_until timestamptz,
  -- The provider's id of the account that it was first connected to. Its payments and saved cards exist in that account only, so
  -- a key of another one is refused. Null: it was connected before this was stored, or never.
  provider_account text,
  primary key (organization_id, psp, psp_merchant_id),
  constraint connected_accounts_have_a_mode check (credentials is null or
    (is_sandbox is not null and credentials_last4 is not null and connected_at is not null))
);

-- Orders: one row a custom charge, from the claim on. While processing it is its own entry in the queue of things to settle.
-- The project is one of the organization's, which its foreign key checks: another reference to the organization would make a
-- charge lock one row more.
create table orders (
  organization_id text collate "C" not null,
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
  -- Until then the claiming process is still making the charge itself, and no other may settle it.
  lease_until     timestamptz,
  next_look_at    timestamptz,
  looks           int not null default 0,
  -- The sum of succeeded refunds, and of those that are not soft.
  amount_refunded      numeric not null default 0,
  amount_refunded_hard numeric not null default 0,
  -- Why an operator ended it by hand, when no provider could ever tell.
  resolved_because text,
  -- The provider's id of the prepared payment. Null: none was stored, so no confirmation was ever sent.
  provider_handle text,
  prepared_at     timestamptz,
  -- The provider's customer that the card is attached to.
  provider_customer text,
  -- The provider's id of the charge, as this program settled it: refunds pay it back. Imported rows do not count.
  charge_transaction_id text,
  -- What the caller asked for, where the provider charged something else.
  asked_amount    numeric,
  asked_currency_code text,
  -- Since when a process has had it, if that is not since it was made.
  begun_at        timestamptz,
  -- The first of the status checks in a row that did not find it at the provider.
  not_found_at    timestamptz,
  -- How the provider's response differs from the request: `amount`, `currency` or `reference`.
  provider_mismatch text,
  -- When a process took it for a status check: organizations take turns, also when the database's clock is set back.
  handed_over_at  timestamptz,
  -- Since when the provider has replied "pending", because it decides days later. Such a charge needs no operator; one whose
  -- outcome is unknown does. Null unless the last reply was "pending".
  pending_since   timestamptz,
  -- Whether news of it came while a process held it: that process may have asked the provider before, so the next status check
  -- is at once.
  has_news        boolean not null default false,
  -- The credits that it grants when it succeeds: of its request, or null for the rules of the organization.
  -- [{"unit", "amount", "expires_after"}], the last in hours or null.
  grants          json,
  -- Whether it was counted by the caps: money that was not taken is given back to the counters.
  is_counted      boolean not null default false,
  primary key (organization_id, order_id),
  -- At most one provider charge for each (customer, key).
  unique (organization_id, external_id, idempotency_key),
  foreign key (organization_id, external_id) references customers (organization_id, external_id),
  foreign key (organization_id, project_id) references projects (organization_id, id),
  check ((status = 'processing') = (settled_at is null)),
  check (status <> 'processing' or next_look_at is not null),
  check (amount_refunded <= amount and amount_refunded_hard <= amount_refunded)
);
-- One charge in progress a customer.
create unique index orders_in_progress on orders (organization_id, external_id) where status = 'processing';
create index orders_due on orders (organization_id, next_look_at) where status = 'processing';
create index orders_by_creation on orders (organization_id, created_at, order_id);
-- A provider lists movements of money by key alone, for all tenants: reconciling looks them up here.
create index orders_by_provider_key on orders (provider_key);
-- A provider names the charge of a refund or dispute by its own id alone.
create index orders_by_charge_transaction on orders (charge_transaction_id) where charge_transaction_id is not null;
create index orders_with_mismatch on orders (organization_id, order_id) where provider_mismatch is not null;

-- Refunds, as orders where a column has the same name.
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
  -- Whether the request named an amount: a key used again without one is not the same request.
  amount_given    boolean not null default true,
  resolved_because text,
  -- `provider`: made at the provider, not through this program.
  origin          text not null default 'tundish' check (origin in ('tundish', 'provider')),
  -- Found at the provider under a key of ours, after a restored backup had forgotten it.
  is_adopted      boolean not null default false,
  provider_transaction_id text,
  asked_amount    numeric,
  begun_at        timestamptz,
  not_found_at    timestamptz,
  provider_mismatch text,
  -- True: its process gave it up before it called the provider.
  is_unsent       boolean not null default false,
  -- When a refund that had succeeded failed after all.
  failed_later_at timestamptz,
  handed_over_at  timestamptz,
  -- Null while the outcome is not known: such a refund is not listed. Stamped under the lock of its project (begin_write), so that
  -- the project's sync horizon holds for it too.
  updated_at      timestamptz,
  pending_since   timestamptz,
  has_news        boolean not null default false,
  primary key (organization_id, refund_id),
  unique (organization_id, external_id, idempotency_key),
  foreign key (organization_id, order_id) references orders (organization_id, order_id),
  check ((status = 'processing') = (settled_at is null)),
  check (status <> 'processing' or next_look_at is not null),
  check (status = 'processing' or updated_at is not null)
);
-- One refund of ours in progress an order. Those that were found at the provider exist there already.
create unique index refunds_in_progress on refunds (organization_id, order_id) where status = 'processing' and not is_adopted;
create index refunds_due on refunds (organization_id, next_look_at) where status = 'processing';
create index refunds_by_order on refunds (organization_id, order_id, created_at);
create index refunds_by_creation on refunds (organization_id, created_at, refund_id) where status <> 'processing';
create index refunds_by_update on refunds (organization_id, updated_at, refund_id) where status <> 'processing';
-- As orders_by_provider_key.
create index refunds_by_provider_key on refunds (provider_key);
-- Support searches for the id that the provider's pages and e-mails quote; refunds of an order are also found by it. Not unique:
-- that a provider gives two refunds of an order one id is its mistake, and must not keep the second from being settled.
create index refunds_by_provider_transaction on refunds (organization_id, provider_transaction_id, order_id)
  where provider_transaction_id is not null;
create index refunds_with_mismatch on refunds (organization_id, refund_id) where provider_mismatch is not null;

create table disputes (
  organization_id     text collate "C" not null,
  order_id            uuid not null,
  -- The provider's id.
  dispute_id          text collate "C" not null,
  amount              numeric not null check (amount > 0),
  currency_code       text not null,
  status              text not null check (status in ('open', 'won', 'lost')),
  reason              text,
  opened_at           timestamptz not null,
  funds_withdrawn_at  timestamptz,
  funds_reinstated_at timestamptz,
  created_at          timestamptz not null,
  -- As of refunds.
  updated_at          timestamptz not null,
  primary key (organization_id, order_id, dispute_id),
  foreign key (organization_id, order_id) references orders (organization_id, order_id)
);
create index disputes_by_id on disputes (organization_id, dispute_id);
create index disputes_by_creation on disputes (organization_id, created_at, dispute_id, order_id);
create index disputes_by_update on disputes (organization_id, updated_at, dispute_id, order_id);

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
  -- As of refunds.
  updated_at      timestamptz not null,
  primary key (organization_id, consumable_id),
  -- Exactly one consumable a successful charge.
  unique (organization_id, order_id),
  foreign key (organization_id, order_id) references orders (organization_id, order_id),
  check (is_active = (revoked_at is null))
);
create index consumables_by_customer on consumables (organization_id, external_id, granted_at);
create index consumables_by_creation on consumables (organization_id, granted_at, consumable_id);
create index consumables_by_update on consumables (organization_id, updated_at, consumable_id);

-- The calls to a provider about an order, in the order they were made: what the order's own row does not tell. Notes
-- without a foreign key: they are written apart from the charge, which must not wait for them nor they for it.
create table order_log (
  organization_id text collate "C" not null,
  order_id        uuid not null,
  at              timestamptz not null,
  call            text not null check (call in ('prepare', 'confirm', 'charge', 'find_by_key',
    'look_up', 'refuse', 'refund', 'refunds_of', 'disputes_of')),
  refund_id       uuid,
  -- The provider's reply: `succeeded`, `failed`, `unknown` and the like.
  outcome         text not null,
  duration_ms     int not null
);
create index order_log_by_order on order_log (organization_id, order_id, at);

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
