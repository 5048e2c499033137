-- breaking: no
--
-- What the provider says now of saved cards that changed there: banks renew cards, and the token stays. A card without a row
-- is as the payment that saved it says; report rows never change.
create table saved_cards (
  organization_id text collate "C" not null references organizations (id),
  token           text collate "C" not null,
  psp             text collate "C" not null,
  psp_merchant_id text collate "C" not null,
  network         text,
  last4           text check (last4 ~ '^[0-9]{4}$'),
  expiration_date text,
  -- When the look-up began whose answer this is: a later one is never replaced by an earlier one.
  looked_up_at    timestamptz not null,
  primary key (organization_id, token, psp, psp_merchant_id)
);
