-- breaking: no
--
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
