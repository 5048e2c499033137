-- breaking: no
--
-- The operator's side: keys, the audit log and the dashboard, and what shows replicas and failovers.

-- Operator keys belong to the installation, not to a tenant. Only the hash is kept: the key itself is never needed.
create table operator_keys (
  id           uuid primary key,
  name         text not null check (char_length(name) between 1 and 100),
  hash         bytea not null unique check (octet_length(hash) = 32),
  -- A key that may write may read.
  scope        text not null check (scope in ('read', 'write')),
  created_at   timestamptz not null,
  expires_at   timestamptz,
  -- To the minute: written when it would change by more.
  last_used_at timestamptz
);

-- What operators did. Rows are added, never changed or removed; each carries an HMAC of itself and of the one before,
-- under a key that is not in this database.
create table audit_log (
  sequence   bigint primary key check (sequence > 0),
  at         timestamptz not null,
  -- `operator key`, `command line`, `project key` or `tundish`; then its id, or the name of the account.
  actor_kind text not null,
  actor      text not null,
  -- The address a request came from, or the host a command ran on.
  source     text not null,
  action     text not null,
  target     text not null,
  -- Settings and the like before and after; never a secret, never personal data.
  before     json,
  after      json,
  hash       bytea not null check (octet_length(hash) = 32)
);
create index audit_log_by_target on audit_log (target, sequence);

-- The newest entry, locked by each transaction that adds one, so that the entries of several processes form one chain.
create table audit_head (
  id       int primary key default 1 check (id = 1),
  sequence bigint not null,
  hash     bytea not null
);
insert into audit_head (sequence, hash) values (0, decode(repeat('00', 32), 'hex'));

-- The keys that chained the audit log before the master key was replaced, sealed under the present one: without them the
-- entries of that time could no longer be verified.
create table audit_chain_keys (
  -- The last entry that was chained with the key; the first one follows the last entry of the key before.
  last_sequence bigint primary key,
  sealed        bytea not null
);

-- The dashboard: its sessions, and links that sign in once. Both belong to an operator key and end with it: every
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

-- Lets a process trust a streaming replica. It travels through replication itself, so that a replica shows by its rows
-- how far it has come. One row, as soon as a process reads from a replica. Each process that does changes the token a few times
-- a second: a replica that shows a token holds everything that was committed before that token was written, and the clocks of
-- two machines need not be compared. A token that this primary never wrote belongs to another database, or to a server that
-- has gone another way.
create table replica_heartbeat (
  one   boolean primary key default true check (one),
  token uuid not null default gen_random_uuid(),
  at    timestamptz not null default '-infinity'
) with (fillfactor = 10);

-- How a failover that lost commits is noticed. A beat is written about once a second, in a row that travels through
-- replication, and processes remember the newest beat whose commit was confirmed: a server that does not have it has lost
-- it, and what was committed after the last beat that it does have. One row, if the database is not the embedded one.
create table commit_beat (
  one        boolean primary key default true check (one),
  -- Grows by one with each failover or loss that was noticed; number grows with each beat.
  generation bigint not null default 0,
  number     bigint not null default 0,
  -- The timeline of the server that wrote the beat: a promoted standby begins a new one.
  timeline   bigint not null,
  -- Whether commits waited for a standby then.
  waits      boolean not null,
  at         timestamptz not null,
  -- All commits after this beat are stamped at or after this instant.
  safe_until timestamptz not null
) with (fillfactor = 10);

-- One row for each failover, and for each loss of commits without one (a crash without synchronous_commit).
create table failovers (
  -- The first generation of beats after it, the last one before it, and the last beat of that one that is still there.
  generation      bigint primary key,
  last_generation bigint not null,
  last_number     bigint not null,
  timeline        bigint not null,
  noticed_at      timestamptz not null,
  -- certain: a confirmed beat is missing. possible: commits did not wait for a standby.
  loss            text not null check (loss in ('none', 'possible', 'certain')),
  -- Commits that are lost were stamped at or after this instant.
  lost_from       timestamptz not null,
  -- When the projects' events about it were written.
  announced_at    timestamptz
);
create index failovers_unannounced on failovers (generation) where loss <> 'none' and announced_at is null;

-- A commit after this call belongs to a transaction that is open now, or stamps with a later clock.
create function safe_until() returns timestamptz language sql volatile as $$
  select least(db_clock(), (select min(xact_start) + least(db_clock() - clock_timestamp(), interval '0')
    from pg_stat_activity where backend_type = 'client backend' and datname = current_database())) $$;

create function wal_timeline() returns bigint language sql volatile as
$$ select ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::bigint $$;

create function commits_wait() returns boolean language sql stable as $$
  select current_setting('synchronous_standby_names') <> ''
    and current_setting('synchronous_commit') not in ('off', 'local') $$;

-- Records a failover, or a loss, once: the first process that notices it does the work, and one that knows a later beat
-- than it did turns it into a certain loss. Raises every clock of a promise above everything that was given out before, and marks
-- what readers hold. Workers list what the providers have moved since. Returns the row that was recorded, if any.
create function note_failover(known_generation bigint, known_number bigint, known_until timestamptz)
returns setof failovers language plpgsql volatile as $$
declare
  beat  commit_beat;
  past  failovers;
  found_loss text;
  raised timestamptz;
begin
  select * into strict beat from commit_beat for update;
  select * into past from failovers f where f.generation > known_generation order by f.generation limit 1;
  if past.generation is not null then
    if past.loss = 'certain' or (past.last_generation, past.last_number) >= (known_generation, known_number) then
      return;
    end if;
    found_loss := 'certain';
    update failovers set loss = found_loss, announced_at = null where generation = past.generation
    returning * into past;
  else
    found_loss := case when (beat.generation, beat.number) < (known_generation, known_number) then 'certain'
      when beat.timeline = wal_timeline() then null
      when beat.waits then 'none' else 'possible' end;
    if found_loss is null then return; end if;
    insert into failovers (generation, last_generation, last_number, timeline, noticed_at, loss, lost_from)
    values (greatest(beat.generation, known_generation) + 1, beat.generation, beat.number, wal_timeline(), db_clock(),
      found_loss, beat.safe_until)
    returning * into past;
    update commit_beat set generation = past.generation, number = 0, timeline = wal_timeline(), waits = commits_wait(),
      at = db_clock(), safe_until = safe_until();
  end if;

  raised := greatest(known_until, beat.at, db_clock());
  perform from project_clocks order by project_id for update;
  update project_clocks c set floor = greatest(c.floor + interval '1 microsecond', raised),
    void_from = case when found_loss = 'none' then c.void_from else least(c.void_from, past.lost_from) end,
    void_until = case when found_loss = 'none' then c.void_until
      else greatest(c.void_until, c.floor + interval '1 microsecond', raised) end;
  perform from organization_clocks order by organization_id for update;
  update organization_clocks set last_trx_created_at = greatest(last_trx_created_at, raised);
  if found_loss <> 'none' then
    insert into unlisted_accounts as u (organization_id, psp, psp_merchant_id, since, cause)
    select organization_id, psp, psp_merchant_id, past.lost_from, 'failover' from merchant_accounts
    where credentials is not null order by 1, 2, 3
    on conflict (organization_id, psp, psp_merchant_id) do update set since = least(u.since, excluded.since);
  end if;
  return next past;
end $$;
