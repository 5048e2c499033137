-- breaking: no
--
-- The fetch of exchange rates from RATES_URL: one row for the installation.
create table rates_fetch (
  single          boolean primary key default true check (single),
  -- When the URL changes, what follows begins anew.
  url             text not null,
  -- When it is due. The process that takes it moves this forward: that is the lease.
  next_attempt_at timestamptz not null,
  -- What the server sent with the last file, for conditional requests.
  etag            text,
  last_modified   text,
  -- The last success, also one without a change.
  fetched_at      timestamptz,
  -- Of the last attempt, if it failed.
  error           text,
  failures        int not null default 0
);
