-- breaking: no
--
-- Notifications of payment providers: which were handled, and how far the list of them at the provider was read.

create table provider_notifications (
  organization_id text collate "C" not null,
  psp             text collate "C" not null,
  psp_merchant_id text collate "C" not null,
  -- The provider's id. It is written after all that follows from the notification was committed.
  notification_id text collate "C" not null,
  kind            text not null,
  received_at     timestamptz not null,
  primary key (organization_id, psp, psp_merchant_id, notification_id)
);
create index provider_notifications_by_time on provider_notifications (received_at);

alter table merchant_accounts
  -- Notifications before this time were read from the provider's list of them, so that none that was lost is missed.
  add column notifications_read_until timestamptz,
  -- When they are read next, and until when a process is doing it.
  add column notifications_due_at timestamptz,
  add column notifications_lease_until timestamptz;

-- Finds the payments of a saved card that is gone at the provider.
create index report_transactions_by_card on report_transactions (organization_id, payment_method_token)
  where payment_method_token is not null;
