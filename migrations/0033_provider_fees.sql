-- breaking: no
--
-- What payment providers keep of payments, refunds and disputes, for the finance report.

create table provider_fees (
  organization_id text collate "C" not null,
  psp             text collate "C" not null,
  psp_merchant_id text collate "C" not null,
  -- The charge, refund or dispute as payments name it: a charge that has two names at the provider has a row for each.
  transaction_id  text collate "C" not null,
  -- Which movement of it; a refund that failed afterwards, and a dispute that was won, have two.
  move            text not null check (move in ('sale', 'refund', 'refund_failed', 'chargeback', 'chargeback_reversal')),
  -- The entry in the balance at the provider: what is read twice is stored once.
  entry_id        text collate "C" not null,
  -- In major units of the balance's currency, which may be another than the payment's; negative: given back.
  fee             numeric not null,
  currency_code   text not null,
  entered_at      timestamptz not null,
  primary key (organization_id, psp, psp_merchant_id, transaction_id, move, entry_id)
);

-- Finds which entries of a notification are known, so that the provider is not asked for them again. It begins otherwise than
-- the primary key: a plan made without statistics would take the one for the other, and read all fees of the account.
create index provider_fees_by_entry on provider_fees (organization_id, entry_id, psp, psp_merchant_id);
