-- breaking: no
--
-- Payouts of merchant accounts, and the entries of their balance: what each payout consists of.
create table provider_payouts (
  organization_id text collate "C" not null,
  psp             text collate "C" not null,
  psp_merchant_id text collate "C" not null,
  -- The provider's id.
  payout_id       text collate "C" not null,
  -- In major units; negative if the provider took money from the bank account.
  amount          numeric not null,
  currency_code   text not null,
  status          text not null check (status in ('pending', 'in_transit', 'paid', 'failed', 'canceled')),
  -- Only of payouts by a schedule does the provider tell which entries they consist of.
  is_automatic    boolean not null,
  arrives_on      date not null,
  created_at      timestamptz not null,
  failure_code    text,
  -- The line of the bank that an operator has found for it.
  bank_day        date,
  bank_amount     numeric,
  bank_reference  text,
  matched_at      timestamptz,
  primary key (organization_id, psp, psp_merchant_id, payout_id),
  check ((matched_at is null) = (bank_day is null) and (matched_at is null) = (bank_amount is null))
);
create index provider_payouts_by_time on provider_payouts (organization_id, created_at, payout_id);

create table balance_entries (
  organization_id text collate "C" not null,
  psp             text collate "C" not null,
  psp_merchant_id text collate "C" not null,
  entry_id        text collate "C" not null,
  -- Null: not paid out yet, or by a payout that was made by hand.
  payout_id       text collate "C",
  -- The provider's words for what it is.
  type            text not null,
  category        text,
  -- In major units; negative when the account paid. The net is the amount less the fee.
  amount          numeric not null,
  fee             numeric not null,
  net             numeric not null,
  currency_code   text not null,
  -- The provider's id of the charge, refund, dispute or payout.
  source          text collate "C",
  -- Only of entries without a payment: those of payments may name people.
  description     text,
  entered_at      timestamptz not null,
  primary key (organization_id, psp, psp_merchant_id, entry_id)
);
create index balance_entries_by_payout on balance_entries (organization_id, payout_id, psp, psp_merchant_id, entered_at)
  where payout_id is not null;
create index balance_entries_in_balance on balance_entries (organization_id, psp, psp_merchant_id, entered_at)
  where payout_id is null;
create index balance_entries_by_time on balance_entries (organization_id, entered_at);
