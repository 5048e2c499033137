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
