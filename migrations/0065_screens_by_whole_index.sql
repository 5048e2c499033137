-- breaking: no
--
-- The keys of screens had the first five digits of the index, so screens from index 100000 on shared keys with others. Days with
-- keys that may have been cut are computed again.
insert into figure_marks (project_id, family, day)
select distinct project_id, 'visits', day from figures_screens where subkey >= '10000';
