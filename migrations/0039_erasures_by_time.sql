-- breaking: no
--
-- A project's erasures, newest first, and those of a week: the list and the count read no others.
create index erasures_by_time on erasures (project_id, erased_at, profile_id);
