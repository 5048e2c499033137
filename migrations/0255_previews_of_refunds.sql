-- breaking: no
--
-- Refunds and disputes of a person whose profile is a preview are test data in figures, as the payments are.
insert into figure_marks (project_id, family, day)
select distinct p.project_id, 'sales', (coalesce(r.psp_date, r.trx_created_at) at time zone j.time_zone)::date
from profiles p
join projects j on j.id = p.project_id
join customers c on c.project_id = p.project_id and c.profile_id = p.id
join report_transactions r on r.organization_id = c.organization_id and r.external_id = c.external_id
where p.preview and isfinite(coalesce(r.psp_date, r.trx_created_at));
