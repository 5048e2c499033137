-- breaking: no
--
-- People who signed in to the dashboard at the identity provider, with the access that their groups gave them. Every few minutes a request
-- has it confirmed there; a session that was not for a quarter of an hour opens nothing.
create table people_sessions (
  hash           bytea primary key check (octet_length(hash) = 32),
  -- Who it is, by the provider's id and name of them.
  subject        text collate "C" not null,
  name           text not null,
  -- As `role`, `organizations`, `projects` and `refund_limits` of `operator_keys`.
  access         jsonb not null,
  -- The tokens of the provider, sealed under the master key.
  tokens         bytea not null,
  created_at     timestamptz not null,
  expires_at     timestamptz not null,
  checked_at     timestamptz not null,
  -- Until when one process alone may ask the provider: a refresh token may be used only once.
  checking_until timestamptz
);
create index people_sessions_by_expiry on people_sessions (expires_at);
