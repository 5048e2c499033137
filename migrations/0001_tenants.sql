-- breaking: no
--
-- Organizations and projects, the clocks of their promises, and their keys.
--
-- Rules that hold for every table of this folder:
--   * The tenant (project_id, or organization_id in billing) leads every primary key, unique rule, foreign key and index,
--     so that a table can be distributed or partitioned by tenant without a rewrite. The exceptions say why.
--   * No triggers on tenant tables: the few statements that write them set the stamps and counters themselves.
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

create table organizations (
  id         text collate "C" primary key check (id ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$'),
  name       text not null,
  created_at timestamptz not null default db_clock(),
  one_off_charge_enabled    boolean not null default false,
  -- Major units by currency code; '*' is for every currency without an entry.
  one_off_charge_max_amount jsonb not null default '{"*": "1000"}',
  -- Requests a second, and how many at once on top; null is the default of the settings, a rate of 0 no limit.
  rate_limit       int check (rate_limit between 0 and 1000000),
  rate_limit_burst int check (rate_limit_burst between 1 and 10000000),
  -- Whether an erasure is repeated at the payment provider: the customer there is emptied (`on`) or deleted (`delete`).
  erase_at_provider text not null default 'off' check (erase_at_provider in ('off', 'on', 'delete')),
  -- Whether a refund makes a debt of credits that were spent, or leaves them.
  credits_debt boolean not null default true,
  check ((rate_limit is null) = (rate_limit_burst is null))
);

create table projects (
  id              text collate "C" primary key check (id ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$'),
  organization_id text collate "C" not null references organizations (id),
  name            text not null,
  created_at      timestamptz not null default db_clock(),
  -- The project's number in advisory locks, which take integers only.
  number          int not null generated always as identity unique,
  -- As of organizations.
  rate_limit       int check (rate_limit between 0 and 1000000),
  rate_limit_burst int check (rate_limit_burst between 1 and 10000000),
  unique (organization_id, id),
  check ((rate_limit is null) = (rate_limit_burst is null))
);

-- One row a project: what a sync has been promised.
--   horizon: the last promise. Every change stamped before it is visible.
--   floor:   no transaction that begins to write after this was stored stamps anything earlier. Never below horizon.
-- Both only grow, so that a clock set back cannot break a promise.
create table project_clocks (
  project_id text collate "C" primary key references projects (id),
  floor      timestamptz not null default '-infinity',
  horizon    timestamptz not null default '-infinity',
  -- After a failover: what a reader received may not exist any more if it is stamped at or after void_from and was read with
  -- a horizon up to void_until.
  void_from  timestamptz,
  void_until timestamptz,
  check (floor >= horizon),
  check ((void_from is null) = (void_until is null))
) with (fillfactor = 50);

-- Class of the advisory locks that writers of a project's records hold, shared, to the end of their transaction.
create function write_lock_class() returns int language sql immutable as $$ select 7483 $$;

-- Begins a write to a project's records: takes the project's lock, then reads the floor in a later statement, and
-- returns the least stamp this transaction may use. now() is in it because the horizon trusts a writer's xact_start.
--
-- The last step of a move to another shard closes an organization: the row `closed ID` of `instance`. From then on no writer
-- of its records begins, also if the program that moves it ends, or its locks are lost in a crash: the other shard may have
-- the organization already. A writer that waited for the move's lock sees the row, or that the clock of its project is gone.
-- The errcode is of the class of a server that cannot be used at the moment, so that callers try again.
create function begin_write(project text) returns timestamptz language plpgsql volatile as $$
declare
  base timestamptz;
  lock_number int;
  organization text;
begin
  select p.number, p.organization_id into strict lock_number, organization from projects p where p.id = project;
  perform pg_advisory_xact_lock_shared(write_lock_class(), lock_number);
  select greatest(c.floor, db_clock(), now() + (db_clock() - clock_timestamp())) into base from project_clocks c
    where c.project_id = project and not exists (select from instance i where i.name = 'closed ' || organization);
  if not found then
    raise exception 'The organization "%" is being moved to another shard.', organization using errcode = '57PTU';
  end if;
  return base;
end $$;

-- Secret keys: of a project (data API, webhooks) or of an organization (billing API).
-- The hash finds a key; the sealed copy (AES-256-GCM under the master key) signs webhooks. The key itself is not stored.
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
  -- What a restricted key may do. Null is a full key; of a project, full keys alone sign webhooks.
  scopes          text[] check (cardinality(scopes) > 0),
  -- The last four characters, by which people recognize a key. Null for keys that are older than this column.
  last_four       text check (length(last_four) = 4),
  foreign key (organization_id, project_id) references projects (organization_id, id)
);
create index secret_keys_by_owner on secret_keys (organization_id, project_id);

-- A leaky bucket for each busy key, as one instant: until then the key's requests so far take, at its rate. Lost in a
-- crash, when every bucket begins empty, and in exchange its writing costs next to nothing.
create unlogged table key_usage (
  key_id     uuid primary key,
  busy_until timestamptz not null
) with (fillfactor = 50);

-- Adds requests worth `seconds` of its rate to a key's bucket, and returns how many seconds are in it now. It never holds
-- more than `most`; a bucket that does was written before the clock was set back.
create function spend(key uuid, seconds float8, most float8) returns float8 language sql volatile as $$
  insert into key_usage as u (key_id, busy_until) values (key, db_clock() + make_interval(secs => seconds))
  on conflict (key_id) do update set busy_until = least(
    db_clock() + make_interval(secs => most),
    make_interval(secs => seconds) +
      case when u.busy_until > db_clock() + make_interval(secs => most) then db_clock()
           else greatest(u.busy_until, db_clock()) end)
  returning extract(epoch from busy_until - db_clock())::float8
$$;

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
