-- breaking: no
--
-- The days of figures are those of the project's time zone. Columns that end in _usd have amounts in the project's reporting currency, in
-- minor units, and without_usd counts what has no value in it: both are US dollars unless the project has another currency.
--
-- What the stored figures of a project are in. When the project has other settings, its figures are removed and computed again.
create table figure_settings (
  project_id text collate "C" primary key references projects (id),
  time_zone  text not null,
  currency   text not null,
  -- Grows by one with each change, so that a pass which began before does not complete the figures.
  version    int not null default 0,
  -- False until all days are computed after a change.
  is_whole   boolean not null default true
);
insert into figure_settings (project_id, time_zone, currency) select id, time_zone, reporting_currency from projects;
