-- breaking: no
--
-- People: the customers of billing, other ids of a profile, and erasures.

create table customers (
  organization_id text collate "C" not null references organizations (id),
  external_id     text collate "C" not null check (char_length(external_id) between 1 and 256),
  project_id      text collate "C" not null,
  email           text,
  profile_id      text collate "C",
  created_at      timestamptz not null,
  updated_at      timestamptz not null,
  -- Since then no card of the customer may be charged: it was erased at the provider too.
  cards_erased_at timestamptz,
  -- The e-mail address in the same folding as those of profiles: lower() follows the locale of the database. The server fills
  -- the column for rows without it, a batch at a time.
  email_folded    text,
  primary key (organization_id, external_id),
  foreign key (organization_id, project_id) references projects (organization_id, id),
  foreign key (project_id, profile_id) references profiles (project_id, id)
);
create index customers_by_profile on customers (project_id, profile_id) where profile_id is not null;
create index customers_by_folded_email on customers (organization_id, email_folded) where email_folded is not null;
create index customers_unfolded on customers (organization_id, external_id) where email is not null and email_folded is null;

-- Other ids of a profile: a profile that was merged into it, which remains without personal data, or a customer at the payment
-- provider who was its person already. A record that names such an id is taken as naming the profile.
create table profile_aliases (
  project_id text collate "C" not null references projects (id),
  alias      text collate "C" not null,
  -- Never an alias itself: a merge of it takes its aliases along.
  profile_id text collate "C" not null,
  created_at timestamptz not null,
  primary key (project_id, alias),
  foreign key (project_id, profile_id) references profiles (project_id, id),
  check (alias <> profile_id)
);
create index profile_aliases_by_profile on profile_aliases (project_id, profile_id);

-- Everybody who was ever erased, without anything personal. Rows are added, never changed: a restored backup brings the
-- old table back, which is why the same lines are in a file too.
create table erasures (
  project_id text collate "C" not null references projects (id),
  profile_id text collate "C" not null,
  erased_at  timestamptz not null default db_clock(),
  primary key (project_id, profile_id)
);
-- A project's erasures, newest first, and those of a week: the list and the count read no others.
create index erasures_by_time on erasures (project_id, erased_at, profile_id);

-- Other profiles with the e-mail address or the customer of an erased one, as they were known when it was erased: the address is
-- gone afterwards, and the receipt has to name what the erasure did not reach.
create table erasure_twins (
  project_id text collate "C" not null references projects (id),
  profile_id text collate "C" not null,
  twin_id    text collate "C" not null,
  primary key (project_id, profile_id, twin_id)
);

-- How many erasing transactions a project has had, counted in each of them: a replica that shows this number has replayed
-- every erasure so far.
create table erasure_marks (
  project_id text collate "C" primary key references projects (id),
  number     bigint not null
) with (fillfactor = 50);

-- What an erasure leaves of the address a session came to: scheme and host, without user or password. Browsers take a backslash
-- in an address for a slash: what follows one is path, not host.
create function origin_only(origin text) returns text language sql immutable as
$$ select case when origin ~ '^[A-Za-z][A-Za-z0-9+.-]*://' then
     regexp_replace(origin, '^([A-Za-z][A-Za-z0-9+.-]*://)([^/?#\\]*@)?([^/?#\\]*).*$', '\1\3') end $$;

-- Erasures that are repeated at payment providers, where the organization asks for it: a row for each customer or card
-- there, which is its own entry in the queue until it is done. A customer at the provider may be that of several profiles, one
-- after the other: each has its erasure there, and its receipt.
create table provider_erasures (
  organization_id text collate "C" not null references organizations (id),
  psp             text collate "C" not null,
  psp_merchant_id text collate "C" not null,
  -- The provider's id of its customer, or of a saved card whose customer is not known here.
  target          text collate "C" not null,
  project_id      text collate "C" not null,
  profile_id      text collate "C" not null,
  -- What is done with the customer there.
  how             text not null check (how in ('empty', 'delete')),
  attempts        int not null default 0,
  created_at      timestamptz not null,
  next_attempt_at timestamptz,
  done_at         timestamptz,
  -- Why the last attempt did not succeed; never personal.
  why             text,
  -- The customer that was found for a card or a payment: once the card is detached, it is not found again.
  customer        text collate "C",
  primary key (organization_id, psp, psp_merchant_id, target, project_id, profile_id),
  -- Without a next attempt it is done, or there is nothing at the provider by which the customer could be found; `why` says so.
  check (next_attempt_at is null or done_at is null),
  check (next_attempt_at is not null or done_at is not null or why is not null)
);
create index provider_erasures_due on provider_erasures (next_attempt_at) where next_attempt_at is not null;
create index provider_erasures_by_profile on provider_erasures (project_id, profile_id);
