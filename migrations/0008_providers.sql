-- breaking: no
--
-- What is known of payment providers: customers there, notifications, imports of accounts, and movements that were lost here.

-- The customers at the provider that an import of its account found for a billing customer, who may have no payment yet.
create table provider_customers (
  organization_id text collate "C" not null,
  external_id     text collate "C" not null,
  psp             text collate "C" not null,
  psp_merchant_id text collate "C" not null,
  customer        text collate "C" not null,
  primary key (organization_id, external_id, psp, psp_merchant_id, customer),
  foreign key (organization_id, external_id) references customers (organization_id, external_id)
);

-- Notifications of payment providers that were handled.
create table provider_notifications (
  organization_id text collate "C" not null,
  psp             text collate "C" not null,
  psp_merchant_id text collate "C" not null,
  -- The provider's id. It is written after everything that follows from the notification was committed.
  notification_id text collate "C" not null,
  kind            text not null,
  received_at     timestamptz not null,
  primary key (organization_id, psp, psp_merchant_id, notification_id)
);
create index provider_notifications_by_time on provider_notifications (received_at);

-- Notifications that are stored and not handled yet. A burst is stored at once; then each object is read once.
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

-- Imports of a Stripe account into a project: how far each has come, so that it goes on there after a kill.
create table stripe_imports (
  organization_id text collate "C" not null,
  project_id      text collate "C" not null references projects (id),
  psp_merchant_id text collate "C" not null,
  -- since, external_id_key, follow: as they were asked for.
  options         jsonb not null,
  -- Whether a server carries it out, in place of the command that a person waits for.
  background      boolean not null,
  status          text not null check (status in ('waiting', 'running', 'following', 'done', 'failed', 'stopped')),
  -- The list that is being read, and the id of the last object of it that is stored here.
  step            text not null,
  after           text collate "C",
  -- Of the events at Stripe: those that came earlier are known.
  events_since    timestamptz not null,
  -- What was read at Stripe and what is stored here, by kind, currency and month; and what could not be imported.
  tally           jsonb not null,
  -- Why it failed: a sentence for the operator.
  error           text,
  started_at      timestamptz not null,
  updated_at      timestamptz not null,
  finished_at     timestamptz,
  primary key (organization_id, project_id, psp_merchant_id)
);

-- Which subscription a payment at Stripe belongs to. Only invoices tell, and they are read before charges.
create table stripe_invoice_payments (
  organization_id text collate "C" not null,
  project_id      text collate "C" not null,
  -- The id of a payment intent or of a charge.
  payment         text collate "C" not null,
  subscription_id text collate "C" not null,
  primary key (organization_id, project_id, payment)
);

-- Merchant accounts whose movements since a backup, or since commits that a failover lost, were not listed yet. While an
-- organization has one, its new keys are not charged: one of them may be charged already, at any of its accounts.
create table unlisted_accounts (
  organization_id text collate "C" not null references organizations (id),
  psp             text collate "C" not null,
  psp_merchant_id text collate "C" not null,
  -- The time of the backup, or of the first lost commit.
  since           timestamptz not null,
  -- `restore`: an operator's reconciliation lists it. `failover`: the workers list it at once.
  cause           text not null check (cause in ('restore', 'failover')),
  -- Until then a worker lists it.
  lease_until     timestamptz,
  primary key (organization_id, psp, psp_merchant_id)
);

-- Movements of money that Tundish made and that have no order here. A claim looks its provider key up in them, so they are kept.
create table lost_movements (
  organization_id       text collate "C" not null references organizations (id),
  psp                   text collate "C" not null,
  psp_merchant_id       text collate "C" not null,
  -- The provider's id.
  transaction_id        text collate "C" not null,
  type                  text not null check (type in ('charge', 'refund')),
  -- `failed`: declined, so that no money moved, but its key was used.
  state                 text not null check (state in ('moved', 'pending', 'failed')),
  -- Null for a refund that was made at the provider.
  provider_key          text collate "C",
  -- Our id of the order or refund, as the provider has it.
  reference             text,
  -- Of a refund: the charge that it pays back.
  charge_transaction_id text collate "C",
  -- The provider's customer who was charged.
  provider_customer     text collate "C",
  amount                numeric not null,
  currency_code         text not null,
  moved_at              timestamptz not null,
  found_at              timestamptz not null,
  -- The order by which an operator has adopted a charge, without the caller's key, which is not known.
  order_id              uuid,
  -- An operator's decision that another installation made it with the same account.
  accepted_at           timestamptz,
  accepted_because      text,
  primary key (organization_id, psp, psp_merchant_id, type, transaction_id),
  check ((accepted_at is null) = (accepted_because is null))
);
-- Each claim reads it.
create index lost_movements_by_key on lost_movements (organization_id, provider_key) where type = 'charge';
-- Each refund reads it.
create index lost_movements_by_charge on lost_movements (organization_id, charge_transaction_id) where type = 'refund';
