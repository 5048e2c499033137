-- breaking: no
--
-- A customer at the provider may be that of several profiles, one after the other: each has its erasure there, and its receipt.
alter table provider_erasures drop constraint provider_erasures_pkey,
  add primary key (organization_id, psp, psp_merchant_id, target, project_id, profile_id),
  -- The customer that was found for a card or a payment: once the card is detached, it is not found again.
  add column customer text collate "C",
  -- Without a next attempt it is done, or there is nothing at the provider by which the customer could be found; `why` says so.
  drop constraint provider_erasures_check,
  add check (next_attempt_at is null or done_at is null),
  add check (next_attempt_at is not null or done_at is not null or why is not null);

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
