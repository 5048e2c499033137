-- breaking: no
--
-- Months of the finance report that are closed: their rows are kept as they were, and what changes later is booked in the first open
-- month as corrections.
create table finance_months (
  organization_id text collate "C" not null references organizations (id),
  -- Its first day. Closed months follow each other without a gap.
  month           date not null check (extract(day from month) = 1),
  closed_at       timestamptz not null,
  primary key (organization_id, month)
);

-- The rows of closed months, with nothing that identifies people: the report reads that from the payment.
create table finance_rows (
  organization_id    text collate "C" not null,
  -- The month that it is booked in.
  month              date not null,
  trx_id             uuid not null,
  -- A payment may have several corrections in a month: of the account that it no longer has, and of the other one.
  part               int not null,
  order_id           uuid not null,
  project_id         text collate "C" not null,
  -- Whether it differs from what an earlier month has of the payment, and is the difference.
  is_correction      boolean not null,
  is_test            boolean not null,
  -- Null: no money moved.
  kind               text,
  -- In major units, negative when the merchant paid; of a correction the difference.
  amount             numeric not null,
  amount_usd         numeric,
  currency_code      text not null,
  fee                numeric,
  fee_currency       text,
  psp                text not null,
  psp_merchant_id    text collate "C",
  psp_transaction_id text collate "C",
  paid_at            timestamptz not null,
  trx_created_at     timestamptz not null,
  -- The time of the payment, or the beginning of the month that a correction is booked in.
  booked_at          timestamptz not null,
  primary key (organization_id, trx_id, month, part),
  foreign key (organization_id, month) references finance_months (organization_id, month)
);
create index finance_rows_by_time on finance_rows (organization_id, booked_at, trx_created_at, part);
create index finance_rows_by_order on finance_rows (organization_id, order_id);
-- Finds the rows whose fee became known after their month was closed.
create index finance_rows_by_provider_id on finance_rows (organization_id, psp_transaction_id)
  where psp_transaction_id is not null;

-- Finds what changed since a month was closed. Rows that Tundish writes are found by the time of the row, so that a charge has no
-- index more.
create index report_transactions_by_import on report_transactions (organization_id, updated_at) where imported;
alter table provider_fees add column stored_at timestamptz not null default db_clock();
create index provider_fees_by_storing on provider_fees (organization_id, stored_at);
