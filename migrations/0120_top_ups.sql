-- breaking: no
--
-- Automatic top-ups: when what a customer can spend of a unit falls below a limit, their saved card is charged.

-- The rule of a customer and unit. A removed one stays, because it counts the turns: the key of a charge is made of the unit and the
-- turn, so that a rule that is set again never charges under a key of before, also after a backup was restored.
create table credit_top_ups (
  organization_id text collate "C" not null,
  external_id     text collate "C" not null,
  unit            text collate "C" not null,
  -- Names the rule in events.
  top_up_id       uuid not null,
  status          text not null check (status in ('on', 'off', 'removed')),
  -- Why it is off: the code of the decline or refusal.
  off_reason      text collate "C",
  below           numeric(24, 6) not null check (below > 0),
  -- The charge, and what it grants of the unit; `expires_after` is in hours, null: never.
  amount          numeric not null check (amount > 0),
  currency_code   text collate "C" not null check (currency_code ~ '^[A-Z]{3}$'),
  grants          numeric(24, 6) not null check (grants > 0),
  expires_after   int check (expires_after between 1 and 876000),
  most_per_day    int not null check (most_per_day > 0),
  most_per_month  int not null check (most_per_month > 0),
  -- The number of the next charge. It grows when the outcome of one is known.
  turn            int not null default 1 check (turn > 0),
  -- The last day and month of UTC with a charge, and the charges in them.
  day             date not null default '-infinity',
  used_of_day     int not null default 0,
  month           date not null default '-infinity',
  used_of_month   int not null default 0,
  -- When to look at the balance; null: when it falls. `lease_until`: the time until which one process alone may charge.
  due_at          timestamptz,
  lease_until     timestamptz,
  created_at      timestamptz not null,
  updated_at      timestamptz not null,
  primary key (organization_id, external_id, unit),
  foreign key (organization_id, external_id, unit) references credit_accounts (organization_id, external_id, unit),
  check (status = 'off' or off_reason is null)
) with (fillfactor = 70);
create index credit_top_ups_due on credit_top_ups (due_at) where due_at is not null;
