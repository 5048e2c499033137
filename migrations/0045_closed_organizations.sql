-- breaking: no
--
-- The last step of a move to another shard closes an organization: the row `closed ID` of `instance`. From then on no writer
-- of its records begins, also if the program that moves it ends, or its locks are lost in a crash: the other shard may have
-- the organization already. A writer that waited for the move's lock sees the row, or that the clock of its project is gone.
-- The errcode is of the class of a server that cannot be used at the moment, so that callers try again.
create or replace function begin_write(project text) returns timestamptz language plpgsql volatile as $$
declare
  base timestamptz;
  lock_number int;
  organization text;
begin
  select p.number, p.organization_id into strict lock_number, organization from projects p where p.id = project;
  perform pg_advisory_xact_lock_shared(write_lock_class(), lock_number);
  select greatest(c.floor, db_clock(), now() + (db_clock() - clock_timestamp())) into base from project_clocks c
    where c.project_id = project and not exists (select from instance i where i.name = 'closed ' || organization);
  if not found then
    raise exception 'The organization "%" is being moved to another shard.', organization using errcode = '57PTU';
  end if;
  return base;
end $$;
