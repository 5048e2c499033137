-- breaking: no
--
-- Charges and refunds are followed by organization: its clock shows the stamp of its last row of the report, so that one
-- comparison of two small tables finds everything that is new. Until now each project was looked at in four indexes.

create table figure_reports (
  organization_id text collate "C" primary key references organizations (id),
  -- All rows of the report stamped until this instant have marked the days of their figures.
  reported    timestamptz not null,
  -- No transaction of a charge that was stamped before this instant has still to mark its days.
  followed_at timestamptz not null
) with (fillfactor = 50);

insert into figure_reports (organization_id, reported, followed_at)
select p.organization_id, min(f.reported), min(f.horizon)
from projects p join figure_progress f on f.project_id = p.id group by 1;

-- Only processes of the version before read it.
alter table figure_progress alter column reported set default '-infinity';

-- Charges write transactions in the transaction of their row of the report. Those that were committed since the last look
-- of the version before, behind the horizon of that look, are found by no clock: their days are computed again. A project
-- that was never followed has all of its days computed.
insert into figure_marks (project_id, family, day)
select p.id, 'all', current_date from projects p
where not exists (select from figure_progress f where f.project_id = p.id)
union all
select distinct f.project_id, 'sales', (t.created_at at time zone 'UTC')::date
from figure_progress f
-- In its order, so that the index is read and nothing before the horizon.
cross join lateral (
  select created_at from transactions t where t.project_id = f.project_id and t.updated_at >= f.horizon
  order by t.updated_at offset 0) t;
