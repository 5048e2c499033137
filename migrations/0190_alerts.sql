-- breaking: no
--
-- Alerts on figures and the morning digest of a project: rules, destinations, and the messages with their outcomes.
create table alert_settings (
  project_id    text collate "C" primary key references projects (id),
  -- The hour of the digest in the project's time zone; null: none is sent.
  digest_hour   int check (digest_hour between 0 and 23),
  -- Messages that fall between these hours are sent at their end.
  quiet_from    int check (quiet_from between 0 and 23),
  quiet_to      int check (quiet_to between 0 and 23),
  -- The last days of which a digest was made, and of which it was said that their figures are not complete. They only grow, so that a
  -- clock that is set back repeats nothing.
  digest_day    date,
  stale_day     date,
  -- When the project is checked next. The process that checks it moves this forward: that is the lease.
  next_check_at timestamptz not null,
  check ((quiet_from is null) = (quiet_to is null) and quiet_from <> quiet_to)
);
-- A queue of all projects, of which few have alerts.
create index alert_settings_due on alert_settings (next_check_at);

create table alert_destinations (
  project_id    text collate "C" not null references projects (id),
  id            text collate "C" not null check (id ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$'),
  kind          text not null check (kind in ('webhook', 'slack', 'email')),
  -- Sealed: the URL of a chat service is a secret.
  address       bytea not null,
  -- What pages and logs may show of it.
  shown         text not null,
  -- What is sent to it; an empty list is everything.
  receives      jsonb not null default '[]' check (jsonb_typeof(receives) = 'array'),
  last_sent_at  timestamptz,
  -- Of the last attempt, if it failed.
  last_error    text,
  failing_since timestamptz,
  created_at    timestamptz not null,
  updated_at    timestamptz not null,
  primary key (project_id, id)
);

create table alert_rules (
  project_id  text collate "C" not null references projects (id),
  id          text collate "C" not null check (id ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$'),
  metric      text not null,
  -- `change` is in percent against the same weekday a week earlier: a drop if the threshold is negative.
  condition   text not null check (condition in ('below', 'above', 'change')),
  threshold   numeric not null,
  -- Whether it is checked on the present day, from this hour on, instead of on the day before.
  today       boolean not null,
  from_hour   int not null check (from_hour between 0 and 23),
  -- Only the figures of one value of a dimension.
  dimension   text,
  value       text,
  -- The last day that was decided. It only grows, so that a message is sent once for a rule and day.
  checked_day date,
  last_value  numeric,
  fired_at    timestamptz,
  -- Why it cannot be checked.
  problem     text,
  created_at  timestamptz not null,
  updated_at  timestamptz not null,
  primary key (project_id, id),
  check ((dimension is null) = (value is null))
);

create table alert_messages (
  project_id      text collate "C" not null,
  id              uuid not null,
  destination_id  text collate "C" not null,
  kind            text not null check (kind in ('rule', 'stale', 'digest', 'test')),
  -- Empty for a message that is not about a rule.
  rule_id         text collate "C" not null default '',
  day             date not null,
  -- What is sent, as JSON with `title`, `lines` and `path`; null: it is written when it is sent.
  content         jsonb,
  status          text not null default 'pending' check (status in ('pending', 'sent', 'failed')),
  created_at      timestamptz not null,
  -- When it is due. A process that takes it moves this past its deadline: that is the lease.
  next_attempt_at timestamptz,
  -- When that was set, so that the queue survives a database clock that is set back.
  scheduled_at    timestamptz not null,
  attempts        int not null default 0,
  finished_at     timestamptz,
  -- Of the last attempt.
  error           text,
  primary key (project_id, id),
  foreign key (project_id, destination_id) references alert_destinations (project_id, id),
  check ((status = 'pending') = (next_attempt_at is not null)),
  check ((status = 'pending') = (finished_at is null))
);
-- Each is sent once, whatever several processes do at the same time.
create unique index alert_messages_once on alert_messages (project_id, destination_id, kind, rule_id, day) where kind <> 'test';
create index alert_messages_by_time on alert_messages (project_id, created_at, id);
-- A queue of all projects, of which few messages are pending.
create index alert_messages_due on alert_messages (next_attempt_at) where status = 'pending';
