-- breaking: no
--
-- What the worth and the returns of people leave out, because it has no value in the reporting currency, in its own currency.
alter table figures_worth
  add column gross_unvalued numeric not null default 0,
  add column net_unvalued   numeric not null default 0;
insert into figure_marks (project_id, family, day) select id, 'all', current_date from projects;
