-- breaking: no
--
-- The dashboard: who is signed in, and links that sign in once. Both belong to an operator key and end with it: every
-- request looks the key up. Only hashes are kept.
create table dashboard_sessions (
  hash        bytea primary key check (octet_length(hash) = 32),
  operator_id uuid not null references operator_keys (id),
  created_at  timestamptz not null,
  expires_at  timestamptz not null
);
create index dashboard_sessions_by_expiry on dashboard_sessions (expires_at);

create table sign_in_links (
  hash        bytea primary key check (octet_length(hash) = 32),
  operator_id uuid not null references operator_keys (id),
  expires_at  timestamptz not null
);

-- Who syncs: for each key and list the window that was last read. Written every few seconds at most, from memory: what a
-- process that dies had not written yet is missing here, and nothing depends on it.
create table sync_readers (
  project_id   text collate "C" not null references projects (id),
  key_id       uuid not null,
  list         text collate "C" not null,
  last_seen_at timestamptz not null,
  -- The end of the window; the horizon where the reader gave none.
  window_to    timestamptz not null,
  -- How many rows were read on the day of `last_seen_at`.
  rows_of_day  bigint not null,
  primary key (project_id, key_id, list)
) with (fillfactor = 50);
