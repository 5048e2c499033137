-- breaking: no
--
-- The MRR of subscriptions that have no value in the reporting currency, in their own currency: pages name what the MRR leaves out.
alter table figures_subscriptions add column mrr_unvalued numeric not null default 0;
insert into figure_marks (project_id, family, day) select id, 'all', current_date from projects;
