-- breaking: yes
--
-- Lists of consumables, refunds and disputes, newest first and by windows of changes. A change is stamped under the lock of
-- its project (begin_write), so that the project's sync horizon holds for it too; an older program would not stamp.
alter table consumables add column updated_at timestamptz;
update consumables set updated_at = coalesce(revoked_at, granted_at);
alter table consumables alter column updated_at set not null;
create index consumables_by_creation on consumables (organization_id, granted_at, consumable_id);
create index consumables_by_update on consumables (organization_id, updated_at, consumable_id);

-- Null while the outcome is not known: such a refund is not listed.
alter table refunds add column updated_at timestamptz;
update refunds set updated_at = coalesce(failed_later_at, settled_at) where status <> 'processing';
alter table refunds add check (status = 'processing' or updated_at is not null);
create index refunds_by_creation on refunds (organization_id, created_at, refund_id) where status <> 'processing';
create index refunds_by_update on refunds (organization_id, updated_at, refund_id) where status <> 'processing';

create index disputes_by_creation on disputes (organization_id, created_at, dispute_id, order_id);
create index disputes_by_update on disputes (organization_id, updated_at, dispute_id, order_id);
