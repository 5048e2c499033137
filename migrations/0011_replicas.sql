-- breaking: no
--
-- What lets a process trust a streaming replica. All of it travels through replication itself, so that a replica shows by
-- its own rows how far it has come.

-- One row, once somebody reads from a replica. Whoever reads from a replica changes the token a few times a second: a replica that shows a token holds all that
-- was committed before that token was written, and nobody has to compare the clocks of two machines. A token that this
-- primary never wrote belongs to another database, or to a server that has gone its own way.
create table replica_heartbeat (
  one   boolean primary key default true check (one),
  token uuid not null default gen_random_uuid(),
  at    timestamptz not null default '-infinity'
) with (fillfactor = 10);

-- How many erasing transactions a project has had, counted in each of them: a replica that shows this number has replayed
-- every erasure so far.
create table erasure_marks (
  project_id text collate "C" primary key references projects (id),
  number     bigint not null
) with (fillfactor = 50);
