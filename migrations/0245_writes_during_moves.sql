-- breaking: no
--
-- Begins a write to rows of an organization that no project's lock guards, such as fees, payouts and notifications of its merchant
-- accounts. It waits for the last step of a move to another shard, which locks the organization's row, and fails if that has moved it or
-- closed it, like `begin_write`: otherwise the row would be missing on the other shard. A volatile function reads in later
-- statements, which see what was committed while the lock was waited for.
create function hold_organization(organization text) returns boolean language plpgsql volatile as $$
begin
  perform from organizations o where o.id = organization for key share;
  if not found or exists (select from instance i where i.name = 'closed ' || organization) then
    raise exception 'The organization "%" is being moved to another shard.', organization using errcode = '57PTU';
  end if;
  return true;
end $$;
