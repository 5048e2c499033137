-- breaking: no
--
-- The operator's side: keys of the people and programs that run an installation, and the log of what they did.

-- Operator keys belong to the installation, not to a tenant. Only the hash is kept: nobody needs the key itself.
create table operator_keys (
  id           uuid primary key,
  name         text not null check (char_length(name) between 1 and 100),
  hash         bytea not null unique check (octet_length(hash) = 32),
  -- Whoever may write may read.
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

-- The newest entry, locked by whoever adds one, so that entries of several processes stand in one line.
create table audit_head (
  id       int primary key default 1 check (id = 1),
  sequence bigint not null,
  hash     bytea not null
);
insert into audit_head (sequence, hash) values (0, decode(repeat('00', 32), 'hex'));
