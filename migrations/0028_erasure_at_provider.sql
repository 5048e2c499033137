-- breaking: no
--
-- Erasures that are repeated at payment providers, where the organization asks for it: a row for each customer or card
-- there, which is its own entry in the queue until it is done.
create table provider_erasures (
  organization_id text collate "C" not null references organizations (id),
  psp             text collate "C" not null,
  psp_merchant_id text collate "C" not null,
  -- The provider's id of its customer, or of a saved card whose customer is not known here.
  target          text collate "C" not null,
  project_id      text collate "C" not null,
  profile_id      text collate "C" not null,
  -- What is done with the customer there.
  how             text not null check (how in ('empty', 'delete')),
  attempts        int not null default 0,
  created_at      timestamptz not null,
  -- Null: done.
  next_attempt_at timestamptz,
  done_at         timestamptz,
  -- Why the last attempt did not succeed; never personal.
  why             text,
  primary key (organization_id, psp, psp_merchant_id, target),
  check ((next_attempt_at is null) = (done_at is not null))
);
create index provider_erasures_due on provider_erasures (next_attempt_at) where next_attempt_at is not null;
create index provider_erasures_by_profile on provider_erasures (project_id, profile_id);

-- Since then no card of the customer may be charged: it was erased at the provider too.
alter table customers add column cards_erased_at timestamptz;
