-- breaking: no
--
-- What charges and refunds at real payment providers need: prepared payments, outcomes that come late, and what a
-- provider did that was not asked for here.

alter table orders
  -- The provider's id of the prepared payment. Null: none was stored, so no confirmation was ever sent.
  add column provider_handle text,
  add column prepared_at timestamptz,
  -- The provider's customer that the card is attached to.
  add column provider_customer text,
  -- The provider's id of the charge, as this program settled it: refunds pay it back. Imported rows do not count.
  add column charge_transaction_id text,
  -- What the caller asked for, where the provider charged something else.
  add column asked_amount numeric,
  add column asked_currency_code text,
  -- Since when a process has had it, if that is not since it was made.
  add column begun_at timestamptz,
  -- The first of the look-ups in a row that did not find it at the provider.
  add column not_found_at timestamptz,
  -- How the provider's answer differs from what was asked: `amount`, `currency` or `reference`.
  add column provider_mismatch text;

update orders o set charge_transaction_id = t.psp_transaction_id
from report_transactions t
where o.status = 'succeeded' and t.organization_id = o.organization_id and t.order_id = o.order_id and not t.imported
  and t.psp_transaction_type = 'sale' and t.status = 'succeeded';

-- A provider names the charge of a refund or dispute by its own id alone.
create index orders_by_charge_transaction on orders (charge_transaction_id) where charge_transaction_id is not null;
create index orders_with_mismatch on orders (organization_id, order_id) where provider_mismatch is not null;

alter table refunds
  -- `provider`: made at the provider, not through this program.
  add column origin text not null default 'tundish' check (origin in ('tundish', 'provider')),
  -- Found at the provider under a key of ours, after a restored backup had forgotten it.
  add column is_adopted boolean not null default false,
  add column provider_transaction_id text,
  add column asked_amount numeric,
  add column begun_at timestamptz,
  add column not_found_at timestamptz,
  add column provider_mismatch text,
  -- True: its process gave it up before it called the provider.
  add column is_unsent boolean not null default false,
  -- When a refund that had succeeded failed after all.
  add column failed_later_at timestamptz;

create unique index refunds_by_provider_transaction on refunds (organization_id, order_id, provider_transaction_id)
  where provider_transaction_id is not null;
create index refunds_with_mismatch on refunds (organization_id, refund_id) where provider_mismatch is not null;

-- The customer at the provider that a saved card is attached to.
alter table report_transactions add column psp_customer_id text;

create table disputes (
  organization_id     text collate "C" not null,
  order_id            uuid not null,
  -- The provider's id.
  dispute_id          text collate "C" not null,
  amount              numeric not null check (amount > 0),
  currency_code       text not null,
  status              text not null check (status in ('open', 'won', 'lost')),
  reason              text,
  opened_at           timestamptz not null,
  funds_withdrawn_at  timestamptz,
  funds_reinstated_at timestamptz,
  created_at          timestamptz not null,
  updated_at          timestamptz not null,
  primary key (organization_id, order_id, dispute_id),
  foreign key (organization_id, order_id) references orders (organization_id, order_id)
);

-- Set by a restore to the time of the backup, cleared by a reconciliation: until then a provider may know charges of this
-- organization that the database does not.
alter table organizations add column restored_from timestamptz;
