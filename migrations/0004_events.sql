-- breaking: no
--
-- Events, and the webhooks that deliver them.
--
-- An event waits in its own row until it has been fanned out into one delivery for each endpoint that wants it, so that
-- the writer of an event pays for one row and not for the number of endpoints. A delivery waits in its own row until it
-- has succeeded or its schedule has ended.

-- The outbox: an event is written in the transaction that changed its object. That refers to the project, so that a reference
-- from here would only lock its row once more.
create table events (
  project_id  text collate "C" not null,
  id          uuid not null,
  type        text not null,
  object_id   text collate "C" not null,
  -- Grows by one with each event of the same object.
  sequence    bigint not null,
  created_at  timestamptz not null,
  -- Whose personal data the payload may hold, for erasure.
  profile_id  text collate "C",
  data        json not null,
  -- Not fanned out yet. The queue is one for all tenants, in the order of creation.
  pending     boolean not null default true,
  primary key (project_id, id),
  unique (project_id, object_id, sequence)
);
create index events_pending on events (created_at) where pending;
create index events_by_creation on events (project_id, created_at, id);
create index events_by_profile on events (project_id, profile_id) where profile_id is not null;
-- An erasure looks for the events that show the user agent of its sessions, also when their subscriptions name others now.
create index events_by_session on events (project_id, (data #>> '{session,id}') collate "C")
  where type like 'subscription.%' and data #>> '{session,user_agent}' is not null;

create table webhook_endpoints (
  project_id    text collate "C" not null references projects (id),
  id            uuid not null,
  url           text not null check (char_length(url) between 1 and 2048),
  -- The kinds it wants; an empty list wants all.
  kinds         jsonb not null default '[]' check (jsonb_typeof(kinds) = 'array'),
  enabled       boolean not null default true,
  -- Who switched it off: a person, its own response 410, or days of nothing but failures.
  disabled_because text check (disabled_because in ('operator', 'gone', 'failing')),
  -- The first failure since the last success. Written when that changes, not with each delivery.
  failing_since timestamptz,
  created_at    timestamptz not null,
  updated_at    timestamptz not null,
  -- A removed endpoint may have millions of deliveries. Its row stays, disabled and shown nowhere, until background work has
  -- deleted them in small batches.
  removed_at    timestamptz,
  primary key (project_id, id),
  check (enabled = (disabled_because is null)),
  check (removed_at is null or not enabled)
) with (fillfactor = 70);
create index webhook_endpoints_removed on webhook_endpoints (removed_at) where removed_at is not null;

create table webhook_deliveries (
  project_id  text collate "C" not null,
  event_id    uuid not null,
  endpoint_id uuid not null,
  status      text not null default 'pending' check (status in ('pending', 'succeeded', 'failed')),
  created_at  timestamptz not null,
  -- When it is due. A process that takes it moves this past its own deadline: that is the lease, and when the process
  -- dies the delivery is due again.
  next_attempt_at timestamptz,
  -- How many attempts were begun in all: the number of the current one, by which a late response is told from a fresh one.
  attempts    int not null default 0,
  -- How many of them failed since it was last sent: the place in the schedule.
  failures    int not null default 0,
  finished_at timestamptz,
  -- When the time of the next attempt was set, so that the queue survives a database clock that is set back.
  scheduled_at timestamptz,
  primary key (project_id, event_id, endpoint_id),
  foreign key (project_id, event_id) references events (project_id, id),
  foreign key (project_id, endpoint_id) references webhook_endpoints (project_id, id),
  check ((status = 'pending') = (next_attempt_at is not null)),
  check ((status = 'pending') = (finished_at is null))
) with (fillfactor = 70);
-- Each endpoint's own queue: what is due at one of them is found without passing over another's backlog.
create index webhook_deliveries_due on webhook_deliveries (project_id, endpoint_id, next_attempt_at)
  where status = 'pending';
-- Whether anything is due at all, which is asked several times a second.
create index webhook_deliveries_next on webhook_deliveries (next_attempt_at) where status = 'pending';
create index webhook_deliveries_by_endpoint on webhook_deliveries (project_id, endpoint_id, created_at, event_id);
create index webhook_deliveries_by_creation on webhook_deliveries (project_id, created_at);
create index webhook_deliveries_failing on webhook_deliveries (project_id, created_at, event_id, endpoint_id)
  where failures > 0;
create index webhook_deliveries_finished on webhook_deliveries (finished_at) where status <> 'pending';

-- The outcome of each attempt, kept for 30 days.
create table webhook_attempts (
  project_id   text collate "C" not null,
  event_id     uuid not null,
  endpoint_id  uuid not null,
  number       int not null,
  attempted_at timestamptz not null,
  duration_ms  int not null,
  -- Null when there was no response; then there is a reason.
  status       int,
  error        text,
  -- The first 2 KiB of the body. May repeat personal data: an erasure empties it.
  answer       text,
  primary key (project_id, event_id, endpoint_id, number),
  foreign key (project_id, event_id, endpoint_id) references webhook_deliveries (project_id, event_id, endpoint_id)
    on delete cascade,
  check ((status is null) = (error is not null))
);
create index webhook_attempts_by_time on webhook_attempts (attempted_at);
