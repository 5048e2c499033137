-- breaking: no
--
-- Keys that may do some things only. Null is a full key; of a project, full keys alone sign webhooks.
alter table secret_keys add column scopes text[] check (cardinality(scopes) > 0);
-- The last four characters, by which people recognize a key. Null for keys that are older than this column.
alter table secret_keys add column last_four text check (length(last_four) = 4);
