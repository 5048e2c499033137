-- breaking: no
--
-- Money that has no value in the reporting currency, in its own currency: pages name what their figures leave out.
alter table figures_sales
  add column gross_unvalued        numeric not null default 0,
  add column refunded_unvalued     numeric not null default 0,
  add column charged_back_unvalued numeric not null default 0;
alter table figures_declines
  add column amount_unvalued           numeric not null default 0,
  add column recovered_amount_unvalued numeric not null default 0;
alter table figures_spend add column spent_unvalued numeric not null default 0;
insert into figure_marks (project_id, family, day) select id, 'all', current_date from projects;
