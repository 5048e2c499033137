-- breaking: no
--
-- The time zone whose days, weeks and months the figures of a project have, and the currency that they convert amounts to.
alter table projects
  -- A name of the IANA database that PostgreSQL knows as well: the operation that sets it compares both.
  add column time_zone text not null default 'UTC',
  add column reporting_currency text not null default 'USD' check (reporting_currency ~ '^[A-Z]{3}$');

-- The first instant of a day in a time zone. Where clocks are set back over midnight, midnight comes twice: PostgreSQL takes the later
-- one, the day begins with the earlier one. A day that a zone skipped begins, and ends, with the day after it.
create function day_begins(day date, zone text) returns timestamptz language plpgsql stable strict parallel safe as $$
declare
  midnight timestamptz := day::timestamp at time zone zone;
  -- By how much clocks were set back in the hours before.
  back interval := (midnight - interval '4 hours') at time zone zone - (day::timestamp - interval '4 hours');
begin
  return case when (midnight - back) at time zone zone = day::timestamp then midnight - back else midnight end;
end $$;
