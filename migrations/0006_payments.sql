-- breaking: no
--
-- The report of payments, saved cards, providers' fees, and exchange rates.

-- The payment report: one row for each movement of money whose outcome is known. Rows are added, never changed by us.
create table report_transactions (
  organization_id text collate "C" not null,
  external_id     text collate "C" not null,
  -- Brought by an import (true) or written by Tundish when it settled (false): an import never touches the latter.
  imported        boolean not null,
  updated_at      timestamptz not null,
  order_id        uuid not null,
  trx_id          uuid not null,
  trx_created_at  timestamptz not null,
  amount          numeric not null,
  amount_usd      numeric,
  currency_code   text not null,
  status          text not null,
  integration_type text, region text, psp text not null,
  pp_id int, pp_version int,
  is_cit boolean not null default false, is_fallback boolean not null default false,
  threeds_challenge_issued boolean not null default false, is_vaulted boolean not null default false,
  pm_data_is_network_tokenized boolean not null default false,
  -- The time of the payment at the provider. A row may be stored long after it, by an import that follows an account or by a
  -- late status check: saved cards, finance and figures go by it, or by the time of the row where it is not known.
  psp_date timestamptz,
  psp_transaction_id text, psp_merchant_id text collate "C", psp_transaction_type text not null, psp_status text,
  psp_card_token_type text, psp_reason_message text, psp_reason_type text, psp_reason_code text,
  psp_reason_decline_type text,
  meta_subs_id text, meta_subs_iteration text, meta_retry_step text, meta_oneoff_id text,
  meta_client_svc_project_id text, meta_client_svc_session_id text, meta_client_svc_price_id text,
  pm_type text, threeds_protocol_version text, threeds_response_code text, threeds_reason_code text,
  threeds_reason_text text, authorization_type text, network text,
  pm_data_bin_account_funding_type text, pm_data_bin_account_number_type text, pm_data_bin_issuer_name text,
  pm_data_bin_issuer_country_code text, pm_data_bin_issuer_currency_code text,
  pm_data_bin_prepaid_reloadable_indicator text, pm_data_bin_product_code text, pm_data_bin_product_name text,
  pm_data_bin_product_usage_type text, pm_data_bin_regional_restriction text,
  pm_data_expiration_date text, pm_data_first6 text check (pm_data_first6 ~ '^[0-9]{6}$'),
  pm_data_last4 text check (pm_data_last4 ~ '^[0-9]{4}$'),
  -- The provider's token of the saved card; null = the card was not saved. Never shown.
  payment_method_token text,
  -- The customer at the provider that the saved card is attached to.
  psp_customer_id text,
  primary key (organization_id, trx_id),
  -- The walk of the report rests on this: no two rows of an organization share an instant.
  unique (organization_id, trx_created_at),
  foreign key (organization_id, external_id) references customers (organization_id, external_id)
);
create index report_transactions_by_order on report_transactions (organization_id, order_id, trx_created_at);
create index report_transactions_by_subscription on report_transactions (organization_id, meta_subs_id, trx_created_at)
  where meta_subs_id is not null;
create index report_transactions_by_oneoff on report_transactions (organization_id, meta_oneoff_id, trx_created_at)
  where meta_oneoff_id is not null;
-- Figures of a day, the finance report of a month, and the list of refunds and disputes.
create index report_transactions_by_payment on report_transactions
  (organization_id, (coalesce(psp_date, trx_created_at)), trx_created_at);
-- Finds the saved card: the customer's latest successful payments.
create index report_transactions_by_customer on report_transactions
  (organization_id, external_id, (coalesce(psp_date, trx_created_at)), trx_created_at)
  where psp_transaction_type = 'sale' and status = 'succeeded';
-- A customer's refunds and disputes.
create index report_transactions_by_customer_back on report_transactions
  (organization_id, external_id, (coalesce(psp_date, trx_created_at)))
  where psp_transaction_type <> 'sale';
-- A customer's declined payments, for the page of a person: why did the card not renew?
create index report_transactions_by_customer_declined on report_transactions
  (organization_id, external_id, (coalesce(psp_date, trx_created_at)))
  where psp_transaction_type = 'sale' and status = 'failed';
-- Finds the payments of a saved card that is gone at the provider.
create index report_transactions_by_card on report_transactions (organization_id, payment_method_token)
  where payment_method_token is not null;
-- Finds who is behind a customer of the provider: twins, and objects that are imported from there.
create index report_transactions_by_provider_customer on report_transactions (organization_id, psp_customer_id, external_id)
  where psp_customer_id is not null;
-- Support searches for the provider's id of an imported payment, refund or dispute. Charges and refunds made by Tundish are found
-- by orders and refunds, so that this index costs a charge nothing.
create index report_transactions_by_provider_id on report_transactions (organization_id, psp_transaction_id)
  where imported and psp_transaction_id is not null;
-- As of the records of the data API.
alter table report_transactions alter column organization_id set (n_distinct = 1);

-- The instant of the last report row, locked to the commit by each transaction that adds one: report stamps follow commit order.
create table organization_clocks (
  organization_id     text collate "C" primary key references organizations (id),
  last_trx_created_at timestamptz not null default '-infinity'
) with (fillfactor = 50);

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
  -- When the look-up began that returned this: a later one is never replaced by an earlier one.
  looked_up_at    timestamptz not null,
  primary key (organization_id, token, psp, psp_merchant_id)
);

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

-- What payment providers keep of payments, refunds and disputes, for the finance report.
create table provider_fees (
  organization_id text collate "C" not null,
  psp             text collate "C" not null,
  psp_merchant_id text collate "C" not null,
  -- The charge, refund or dispute as payments name it: a charge that has two names at the provider has a row for each.
  transaction_id  text collate "C" not null,
  -- Which movement of it; a refund that failed afterwards, and a dispute that was won, have two.
  move            text not null check (move in ('sale', 'refund', 'refund_failed', 'chargeback', 'chargeback_reversal')),
  -- The entry in the balance at the provider: an entry that is read twice is stored once.
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

-- Exchange rates in the form of the European Central Bank's tables: units of a currency for one euro. The euro itself
-- is in it with 1, so that every conversion is the same join.
create table exchange_rates (
  organization_id text collate "C" not null references organizations (id),
  currency_code   text collate "C" not null check (currency_code ~ '^[A-Z]{3}$'),
  day             date not null,
  per_euro        numeric not null check (per_euro > 0),
  primary key (organization_id, currency_code, day)
);

-- Exchange rates that were loaded for all organizations. Each organization has them in its own rows, by which amounts are
-- converted; one that is created later gets them from here.
create table shared_exchange_rates (
  currency_code text collate "C" not null check (currency_code ~ '^[A-Z]{3}$'),
  day           date not null,
  per_euro      numeric not null check (per_euro > 0),
  primary key (currency_code, day)
);
