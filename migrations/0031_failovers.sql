-- breaking: no
--
-- What notices that a failover lost commits. A beat is written about once a second, in a row that travels through
-- replication, and processes remember the newest beat whose commit was confirmed: a server that does not have it has lost
-- it, and what was committed after the last beat that it does have.

-- One row, where the database is not the embedded one.
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
  -- What is committed after this beat is stamped at or after this instant.
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

-- What a reader of this project has been given may not exist any more if it is stamped at or after void_from and was read
-- with a horizon up to void_until.
alter table project_clocks
  add column void_from timestamptz,
  add column void_until timestamptz,
  add check ((void_from is null) = (void_until is null));

-- Whatever is committed after this was asked belongs to a transaction that is open now, or stamps with a later clock.
create function safe_until() returns timestamptz language sql volatile as $$
  select least(db_clock(), (select min(xact_start) + least(db_clock() - clock_timestamp(), interval '0')
    from pg_stat_activity where backend_type = 'client backend' and datname = current_database())) $$;

create function wal_timeline() returns bigint language sql volatile as
$$ select ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::bigint $$;

create function commits_wait() returns boolean language sql stable as $$
  select current_setting('synchronous_standby_names') <> ''
    and current_setting('synchronous_commit') not in ('off', 'local') $$;

-- Records a failover, or a loss, once: the first process that notices it does the work, and one that knows a later beat
-- than it did turns it into a certain loss. Raises every clock of a promise above whatever was given out before, and marks
-- what readers hold. Returns what was recorded, if anything.
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
    update organizations set restored_from = least(restored_from, past.lost_from);
  end if;
  return next past;
end $$;
