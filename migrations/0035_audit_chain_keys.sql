-- breaking: no
--
-- The keys that chained the audit log before the master key was replaced, sealed under the present one: without them the
-- entries of that time could no longer be verified.

create table audit_chain_keys (
  -- The last entry that was chained with the key; the first one follows the last entry of the key before.
  last_sequence bigint primary key,
  sealed        bytea not null
);
