-- breaking: no
--
-- The time zone of a month of the finance report, kept when it is closed: closed months must not change, and follow each other.
alter table finance_months add column time_zone text not null default 'UTC';

-- The time zone of the finance report of an organization: that of its closed months; without any, that of its projects if they have one;
-- otherwise UTC.
create function finance_zone(organization text) returns text language sql stable parallel safe as $$
  select coalesce(
    (select m.time_zone from finance_months m where m.organization_id = organization order by m.month desc limit 1),
    (select min(p.time_zone) from projects p where p.organization_id = organization having count(distinct p.time_zone) = 1),
    'UTC') $$;
