-- breaking: no
--
-- Deltas that the sweep has not added up yet. It looks for these alone: with a thousand projects there are a hundred
-- thousand counters, and a look at all of them each second would keep a core busy for nothing.
alter table counts add column fresh boolean not null default true;
create index counts_fresh on counts (project_id, list, field, value) where fresh;
