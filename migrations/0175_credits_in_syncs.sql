-- breaking: no
--
-- Entries of credits in the export: the project of the customer, which cannot change, and the stamp by which a sync reads them.
-- `updated_at` is `created_at` until an erasure empties the entry, or the customer becomes another profile's. Entries that are
-- stored already are stamped now, so that syncs that read this project before get them too.
alter table credit_entries add column project_id text collate "C", add column updated_at timestamptz;
update credit_entries e set project_id = c.project_id, updated_at = db_clock()
from customers c where c.organization_id = e.organization_id and c.external_id = e.external_id;
alter table credit_entries alter column project_id set not null, alter column updated_at set not null;
create index credit_entries_by_change on credit_entries (project_id, updated_at, entry_id);

-- Waits until every entry of the organization that is stamped already is visible to later statements. The error ends the inner
-- transaction, and with it the lock: until the commit nothing waits for the caller.
create function await_credit_entries(organization text) returns void language plpgsql volatile as $$
begin
  perform from credit_clocks where organization_id = organization for no key update;
  raise exception 'released';
exception when raise_exception then
  return;
end $$;
