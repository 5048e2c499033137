-- breaking: no
--
-- Credits: what customers hold of the units of an organization (tokens, minutes, ...), and how it is used up.
--
-- The books are double entry. Each movement has two sides, the customer's account and one of five accounts of the organization
-- (granted, spent, expired, revoked, adjusted): what the one gains the other loses, so that every movement sums to zero. An entry
-- is that movement, written once and never changed. The account keeps its sums, from which its balance is generated.

-- A unit. Amounts have at most `decimals` decimals. `low_below`: `credits.low` is sent when what is available falls below it.
create table credit_units (
  organization_id text collate "C" not null references organizations (id),
  unit            text collate "C" not null check (unit ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  name            text not null,
  decimals        smallint not null default 0 check (decimals between 0 and 6),
  low_below       numeric(24, 6) check (low_below > 0),
  created_at      timestamptz not null,
  primary key (organization_id, unit)
);

-- The time of the last entry of an organization. Locked to the commit by each transaction that stamps an entry, so that the order
-- of stamps is the order of commits: nothing is missed by reading on from the last stamp. Not the clock of the payment report, which charges
-- hold and which tells figures that there is something to count.
create table credit_clocks (
  organization_id text collate "C" primary key references organizations (id),
  last_entry_at   timestamptz not null default '-infinity'
) with (fillfactor = 50);

-- What a charge of this amount grants if its request does not say it. `expires_after` is in hours; null: never.
create table credit_rules (
  organization_id text collate "C" not null,
  currency_code   text collate "C" not null check (currency_code ~ '^[A-Z]{3}$'),
  charged         numeric not null check (charged > 0),
  unit            text collate "C" not null,
  amount          numeric(24, 6) not null check (amount > 0),
  expires_after   int check (expires_after between 1 and 876000),
  created_at      timestamptz not null,
  primary key (organization_id, currency_code, charged, unit),
  foreign key (organization_id, unit) references credit_units (organization_id, unit)
);

-- One row for each customer and unit, locked by everything that moves its credits.
create table credit_accounts (
  organization_id text collate "C" not null,
  external_id     text collate "C" not null,
  unit            text collate "C" not null,
  -- Names the account in events, whose order is that of the account.
  account_id      uuid not null,
  -- The five other sides, as sums of all movements; `adjusted` may be negative.
  granted         numeric(24, 6) not null default 0 check (granted >= 0),
  spent           numeric(24, 6) not null default 0 check (spent >= 0),
  expired         numeric(24, 6) not null default 0 check (expired >= 0),
  revoked         numeric(24, 6) not null default 0 check (revoked >= 0),
  adjusted        numeric(24, 6) not null default 0,
  balance         numeric(24, 6) not null generated always as (granted + adjusted - spent - expired - revoked) stored,
  -- The open holds, also those that have expired and are not closed yet.
  held            numeric(24, 6) not null default 0 check (held >= 0),
  -- When the first of its grants or holds expires: the queue of the background work.
  due_at          timestamptz,
  created_at      timestamptz not null,
  updated_at      timestamptz not null,
  primary key (organization_id, external_id, unit),
  foreign key (organization_id, external_id) references customers (organization_id, external_id),
  foreign key (organization_id, unit) references credit_units (organization_id, unit),
  -- A balance is below zero by revocation only.
  check (spent + expired <= granted + adjusted)
) with (fillfactor = 70);
create index credit_accounts_due on credit_accounts (due_at) where due_at is not null;

-- A grant, and what is left of it. What is neither left nor expired nor revoked was spent, or paid a debt. The sum of what is left is
-- the balance, or zero while that is a debt.
create table credit_grants (
  organization_id text collate "C" not null,
  external_id     text collate "C" not null,
  unit            text collate "C" not null,
  grant_id        uuid not null,
  amount          numeric(24, 6) not null check (amount > 0),
  remaining       numeric(24, 6) not null check (remaining >= 0),
  expired         numeric(24, 6) not null default 0 check (expired >= 0),
  revoked         numeric(24, 6) not null default 0 check (revoked >= 0),
  expires_at      timestamptz,
  -- The charge that granted it.
  order_id        uuid,
  created_at      timestamptz not null,
  primary key (organization_id, external_id, unit, grant_id),
  foreign key (organization_id, external_id, unit) references credit_accounts (organization_id, external_id, unit),
  check (remaining + expired + revoked <= amount)
) with (fillfactor = 70);
create index credit_grants_left on credit_grants (organization_id, external_id, unit) where remaining > 0;
create index credit_grants_by_order on credit_grants (organization_id, order_id) where order_id is not null;

-- Credits reserved for a use whose amount is not known yet. A hold is no movement.
create table credit_holds (
  organization_id text collate "C" not null,
  hold_id         uuid not null,
  external_id     text collate "C" not null,
  unit            text collate "C" not null,
  amount          numeric(24, 6) not null check (amount > 0),
  captured        numeric(24, 6) check (captured > 0 and captured <= amount),
  status          text not null default 'open' check (status in ('open', 'captured', 'released', 'expired')),
  expires_at      timestamptz not null,
  created_at      timestamptz not null,
  primary key (organization_id, hold_id),
  foreign key (organization_id, external_id, unit) references credit_accounts (organization_id, external_id, unit),
  check ((status = 'captured') = (captured is not null))
);
create index credit_holds_open on credit_holds (organization_id, external_id, unit) where status = 'open';

-- The movements, in the order of commits. `amount` is what the customer's balance changes by; `account` changes by the opposite.
create table credit_entries (
  organization_id text collate "C" not null,
  created_at      timestamptz not null,
  entry_id        uuid not null,
  external_id     text collate "C" not null,
  unit            text collate "C" not null,
  account         text not null check (account in ('granted', 'spent', 'expired', 'revoked', 'adjusted')),
  amount          numeric(24, 6) not null check (amount <> 0),
  -- The customer's balance after it.
  balance         numeric(24, 6) not null,
  cause           text not null,
  grant_id        uuid,
  hold_id         uuid,
  order_id        uuid,
  idempotency_key text collate "C",
  -- Why an operator or a program adjusted it.
  reason          text,
  metadata        json,
  primary key (organization_id, created_at),
  foreign key (organization_id, external_id, unit) references credit_accounts (organization_id, external_id, unit)
);
create index credit_entries_by_customer on credit_entries (organization_id, external_id, created_at);

-- The keys of all requests about credits, and their responses; they are never deleted. One key of a customer does one thing.
create table credit_keys (
  organization_id text collate "C" not null,
  external_id     text collate "C" not null,
  idempotency_key text collate "C" not null check (char_length(idempotency_key) between 1 and 128),
  -- What was requested, compared as text: the operation, the unit, the amount, and what else is part of it.
  request         text not null,
  -- The id that the request made: of the entry, the hold, or the grant.
  entry_id        uuid,
  hold_id         uuid,
  grant_id        uuid,
  balance         numeric(24, 6) not null,
  held            numeric(24, 6) not null,
  created_at      timestamptz not null,
  primary key (organization_id, external_id, idempotency_key)
);
