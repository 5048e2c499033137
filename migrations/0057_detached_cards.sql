-- breaking: no
--
-- Cards that were detached at the provider. They are never charged again, also if a payment that names one is stored afterwards: a
-- charge that was in progress, or a payment that was read before.
create table detached_cards (
  organization_id text collate "C" not null,
  token           text collate "C" not null,
  psp             text collate "C" not null,
  psp_merchant_id text collate "C" not null,
  -- When the look-up began that found it detached: a later one may find it attached again.
  detached_at     timestamptz not null,
  primary key (organization_id, token, psp, psp_merchant_id)
);

-- Notifications of payment providers that are stored and not handled yet. A burst is stored at once; then each object is read once.
create table pending_notifications (
  organization_id text collate "C" not null,
  psp             text collate "C" not null,
  psp_merchant_id text collate "C" not null,
  notification_id text collate "C" not null,
  -- Only the parts of the notification that name objects: no personal data.
  event           json not null,
  received_at     timestamptz not null,
  attempts        int not null default 0,
  due_at          timestamptz not null,
  -- Until when a process is handling it; one process at a time handles those of an account.
  lease_until     timestamptz,
  primary key (organization_id, psp, psp_merchant_id, notification_id)
);
create index pending_notifications_by_due on pending_notifications (due_at);
