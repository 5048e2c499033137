-- breaking: yes
--
-- Windows of changes on every list, and the list of experiments. An older program does not count the experiments that it
-- imports, so that their totals would be wrong.
create index funnels_by_update on funnels (project_id, updated_at, id);
create index products_by_update on products (project_id, updated_at, id);
create index experiments_by_creation on experiments (project_id, created_at, id);
create index experiments_by_update on experiments (project_id, updated_at, id);

insert into counts (project_id, list, field, value, n)
select project_id, 'experiments', '', '', count(*) from experiments group by project_id;

-- As for the other lists: planned as if each tenant held the whole table.
alter table experiments alter column project_id set (n_distinct = 1);
